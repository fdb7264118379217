/* say.c: see say.h. Warnings and notes are sentences made where the fact is known; they stay
 * English in both languages, as error messages of the system do.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/say.h"

#include <string.h>

static const struct {
    const char *english, *chinese;
} catalogue[] = {
    {"All tests", "全部测试"},
    {"began at one instant, within", "同时开始，相差"},
    {"in all", "合计"},
    {"tests", "项测试"},
    {"accepted by the kernel", "内核接受"},
    {"after a warm-up of", "预热"},
    {"backward", "反向"},
    {"Chosen", "自动选择"},
    {"clock offset", "时钟偏差"},
    {"closed loop", "闭环"},
    {"connect time", "建连时间"},
    {"connection", "个连接"},
    {"connections", "个连接"},
    {"connects", "建连速率"},
    {"CPU of the hosts", "主机 CPU"},
    {"CPU per GB", "每 GB 的 CPU 时间"},
    {"CPU per million packets", "每百万包的 CPU 时间"},
    {"CPU per million round trips", "每百万往返的 CPU 时间"},
    {"datagram", "数据报"},
    {"delivered", "送达"},
    {"delivered to the socket", "送达套接字"},
    {"Directions", "双向"},
    {"duplicates", "重复"},
    {"errors", "错误"},
    {"event loop", "事件循环"},
    {"Expected", "阈值"},
    {"failed", "失败"},
    {"fairness (Jain)", "公平性 (Jain)"},
    {"first byte", "首字节"},
    {"forward", "正向"},
    {"from sending", "自发送起"},
    {"half the round trip, p50", "半程时间 p50"},
    {"held", "满足"},
    {"idle", "空闲"},
    {"in flight at the end", "结束时未完成"},
    {"JSON", "JSON 文件"},
    {"late", "迟到"},
    {"Latency", "时延"},
    {"left", "剩余"},
    {"Limited by", "瓶颈"},
    {"loss", "丢包率"},
    {"lost", "丢失"},
    {"lost here", "此处丢失"},
    {"max", "最大"},
    {"mean", "平均"},
    {"measured", "测量"},
    {"median", "中位数"},
    {"min", "最小"},
    {"not held", "未满足"},
    {"Notes", "说明"},
    {"open loop", "开环"},
    {"operations", "操作数"},
    {"packets", "包数"},
    {"partial", "部分完成"},
    {"Path, over the whole run", "路径（整个测试过程）"},
    {"path", "发包路径"},
    {"per second", "每秒"},
    {"placement", "放置"},
    {"rate", "速率"},
    {"read by the application", "应用读取"},
    {"received", "接收"},
    {"received by the interface", "网卡接收"},
    {"received forward", "正向接收"},
    {"received in all", "共接收"},
    {"received reverse", "反向接收"},
    {"receiver", "接收端"},
    {"reconnects", "重连"},
    {"reordered", "乱序"},
    {"Repeated", "重复测量"},
    {"retransmits", "重传"},
    {"reverse", "反向"},
    {"round trip", "往返时间"},
    {"round trips", "往返"},
    {"RTT mean", "往返时间 平均"},
    {"RTT p50", "往返时间 p50"},
    {"RTT p99", "往返时间 p99"},
    {"runs", "次数"},
    {"samples", "样本数"},
    {"sender", "发送端"},
    {"sender and receiver", "收发端"},
    {"sent", "发送"},
    {"sent by the application", "应用发送"},
    {"sent by the interface", "网卡发送"},
    {"softirq", "软中断"},
    {"spread", "离散度"},
    {"start of the flows within", "各流启动时差"},
    {"status", "状态"},
    {"steal", "被宿主占用"},
    {"Steps", "加压步骤"},
    {"system", "内核态"},
    {"TCP round trip", "TCP 往返时间"},
    {"The generator was the limit: the figures show this machine, not the target.",
     "发压端是瓶颈：结果反映的是本机，而不是被测对象。"},
    {"they agree", "结果一致"},
    {"they do not agree", "结果不一致"},
    {"this machine, loopback", "本机回环"},
    {"try", "建议"},
    {"user", "用户态"},
    {"verdict", "判定"},
    {"wake-up", "唤醒"},
    {"warm-up", "预热"},
    {"Warnings", "警告"},
    {"trial", "试验"},
    {"Trials", "试验记录"},
    {"flood", "满速"},
    {"step", "步骤"},
    {"confirm", "确认"},
    {"ok", "通过"},
    {"generator", "发压端受限"},
    {"pays", "有增益"},
    {"holds", "持平"},
    {"flat", "无增益"},
    {"p99 passed", "p99 超限"},
    {"broken", "中断"},
    {"highest rate within the limit", "限值内最高速率"},
    {"the other end sends", "对端发送"},
    {"both ends send", "双向同时"},
    {"unix socket", "unix 套接字"},
    {"granted", "实际生效"},
    {"open files", "打开文件数"},
    {"local ports", "本地端口"},
    {"listen backlog", "监听队列"},
    {"link rate", "链路速率"},
    {"receive buffer", "接收缓冲区"},
    {"receiver backlog", "接收端积压队列"},
    {"sender CPU", "发送端 CPU"},
    {"receiver CPU", "接收端 CPU"},
    {"steal time", "被宿主占用的时间"},
    {"receiver window", "接收窗口"},
    {"send buffer", "发送缓冲区"},
    {"congestion window", "拥塞窗口"},
    {"This host", "本机"},
    {"Averages", "平均值"},
    {"CPU, %", "CPU, %"},
    {"nice", "低优先级"},
    {"iowait", "IO 等待"},
    {"irq", "硬中断"},
    {"busy of each CPU", "各 CPU 忙碌度"},
    {"busiest CPUs", "最忙的 CPU"},
    {"load average", "平均负载"},
    {"Load, memory in use and busiest interface", "负载、已用内存与最忙的网卡"},
    {"load", "负载"},
    {"memory, GiB", "内存, GiB"},
    {"interface", "网卡"},
    {"Memory, MiB", "内存, MiB"},
    {"total", "总量"},
    {"used", "已用"},
    {"free", "空闲"},
    {"shared", "共享"},
    {"buff/cache", "缓冲/缓存"},
    {"available", "可用"},
    {"Network", "网络"},
    {"process", "进程"},
    {"load beside it", "同时负载"},
    {"RTT p50 without load", "无负载往返时间 p50"},
    {"RTT p99 without load", "无负载往返时间 p99"},
    {"attention", "需注意"},
    {"unknown", "未知"},
    {"current", "当前"},
    {"wanted", "期望"},
    {"would fix it", "可用此命令修复"},
    {"Each connection takes a descriptor of its process.", "每个连接占用进程的一个描述符。"},
    {"AF_XDP and BPF lock memory; without privileges this is their limit.",
     "AF_XDP 与 BPF 会锁定内存；无特权时以此为限。"},
    {"No process can have more descriptors than this.", "任何进程的描述符数都不能超过它。"},
    {"All processes together cannot open more files than this.",
     "所有进程打开的文件总数不能超过它。"},
    {"A shorter accept queue drops connections that arrive at once.",
     "接受队列过短会丢弃同时到达的连接。"},
    {"Half-open connections beyond it are dropped or get cookies.",
     "超出的半开连接会被丢弃或改用 cookie。"},
    {"Each connection to one address takes a local port; beyond 64512 more addresses are needed.",
     "到同一地址的每个连接占用一个本地端口；超过 64512 个需要更多地址。"},
    {"A small receive buffer loses datagrams in bursts.", "接收缓冲过小，突发时会丢数据报。"},
    {"A small send buffer holds a sender back.", "发送缓冲过小会拖慢发送端。"},
    {"The receive window cannot grow beyond the third value.", "接收窗口不能超过第三个值。"},
    {"What is in flight cannot grow beyond the third value.", "在途数据不能超过第三个值。"},
    {"Packets beyond it are dropped before a protocol sees them.",
     "超出的包在进入协议栈之前就被丢弃。"},
    {"Connection tracking costs CPU, and drops new connections when its table is full.",
     "连接跟踪消耗 CPU，表满时丢弃新连接。"},
    {"bbr paces, also on loopback, where it measures its own timers.",
     "bbr 会限速发送，在回环上测到的只是它自己的定时器。"},
    {"A CPU that changes its clock makes figures that do not repeat.",
     "CPU 变频会使结果无法重复。"},
    {"One CPU that takes all packets of an interface is the first to be full.",
     "一个网卡的包全由一个 CPU 处理，它会最先饱和。"},
    {"Without them the kernel handles each packet by itself, which takes CPU.",
     "没有它们，内核要逐包处理，更耗 CPU。"},
    {"A page that comes back from swap is a pause of milliseconds.",
     "从交换区换回一页要停顿数毫秒。"},
    {"Time that the hypervisor takes shows as latency and lost throughput.",
     "宿主占用的时间表现为时延与吞吐损失。"},
    {"Reading a slow clock costs a system call for each time stamp.",
     "读取慢时钟时，每个时间戳都要一次系统调用。"},
    {"Without it pitot uses epoll, which costs more system calls.",
     "没有它时 pitot 使用 epoll，系统调用更多。"},
    {"What else runs here takes CPU from the measurement.", "其他程序会占用测量所需的 CPU。"},
};

static const char *chinese_for(const char *english)
{
    for (size_t i = 0; i < PT_COUNT(catalogue); i++) {
        if (!strcmp(catalogue[i].english, english))
            return catalogue[i].chinese;
    }
    return NULL;
}

const char *pt_say(bool chinese, const char *english)
{
    const char *found = chinese ? chinese_for(english) : NULL;
    return found ? found : english;
}

bool pt_say_known(const char *english)
{
    return chinese_for(english) != NULL;
}

/* Decodes one character of UTF-8 that is known to be valid enough: never reads past the NUL. */
static uint32_t next_char(const unsigned char **p)
{
    uint32_t c = *(*p)++;
    int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    if (more)
        c &= 0x3fu >> more;
    while (more-- && (**p & 0xc0) == 0x80)
        c = c << 6 | (*(*p)++ & 0x3f);
    return c;
}

/* East Asian Width W and F (Unicode 15, UAX #11), as far as reports can hold them. */
static bool is_wide(uint32_t c)
{
    return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
           (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
           (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
           (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x20000 && c <= 0x3fffd);
}

size_t pt_text_columns(const char *text)
{
    size_t n = 0;
    const unsigned char *p = (const unsigned char *)text;
    while (*p)
        n += is_wide(next_char(&p)) ? 2 : 1;
    return n;
}
