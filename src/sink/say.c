/* say.c: see say.h. Warnings and notes are sentences made where the fact is known; they stay
 * English in both languages, as error messages of the system do.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/say.h"

#include <string.h>

static const struct {
    const char *english, *chinese;
} catalogue[] = {
    {"accepted by the kernel", "内核接受"},
    {"agree", "一致"},
    {"another core", "另一核心"},
    {"arrivals", "到达方式"},
    {"at the interface", "网卡发出"},
    {"back end", "事件引擎"},
    {"batch", "批量"},
    {"Boost", "逐级加压"},
    {"closed loop", "闭环"},
    {"congestion control", "拥塞控制"},
    {"connect time", "建连时间"},
    {"connection", "个连接"},
    {"connections", "个连接"},
    {"connects", "建连速率"},
    {"copy", "拷贝"},
    {"CPU", "CPU"},
    {"CPU per GB", "每 GB CPU"},
    {"CPU per million operations", "每百万次操作 CPU"},
    {"CPU per million packets", "每百万包 CPU"},
    {"delivered", "送达"},
    {"delivered to the socket", "送达套接字"},
    {"duplicates", "重复"},
    {"errors", "错误"},
    {"Expected", "阈值"},
    {"failed", "失败"},
    {"fairness (Jain)", "公平性 (Jain)"},
    {"first byte", "首字节"},
    {"forward", "正向"},
    {"from sending", "自发送起"},
    {"half the round trip", "半程时间"},
    {"held", "满足"},
    {"Chosen", "自动选择"},
    {"Hosts", "主机"},
    {"idle", "空闲"},
    {"in flight at the end", "结束时未完成"},
    {"left", "剩余"},
    {"late", "迟到"},
    {"Latency", "延迟"},
    {"Limited by", "瓶颈"},
    {"load", "负载"},
    {"loss", "丢包率"},
    {"lost", "丢失"},
    {"lost here", "此处丢失"},
    {"max", "最大"},
    {"mean", "平均"},
    {"measured", "测量"},
    {"median", "中位数"},
    {"message size", "消息大小"},
    {"min", "最小"},
    {"Notes", "说明"},
    {"not held", "未满足"},
    {"of warm-up before", "预热"},
    {"open loop", "开环"},
    {"operations", "操作数"},
    {"p50", "p50"},
    {"p90", "p90"},
    {"p95", "p95"},
    {"p99", "p99"},
    {"p99.9", "p99.9"},
    {"p99.99", "p99.99"},
    {"packets", "包数"},
    {"partial", "部分完成"},
    {"Path", "路径"},
    {"rate", "速率"},
    {"read by the application", "应用读取"},
    {"received", "接收"},
    {"received at the interface", "网卡收到"},
    {"receiver", "接收端"},
    {"reconnects", "重连"},
    {"reordered", "乱序"},
    {"Repeated", "重复测量"},
    {"result stored in", "结果保存于"},
    {"retransmits", "重传"},
    {"reverse", "反向"},
    {"round trip", "往返时间"},
    {"round trip p50", "往返时间 p50"},
    {"round trip p99", "往返时间 p99"},
    {"round trip mean", "往返时间平均"},
    {"round trips", "往返速率"},
    {"runs", "次"},
    {"runs do not agree", "次，结果不一致"},
    {"sender", "发送端"},
    {"sender and receiver", "发送端兼接收端"},
    {"sent", "发送"},
    {"sent by the application", "应用发送"},
    {"softirq", "软中断"},
    {"spread", "离散度"},
    {"stage", "阶段"},
    {"system", "内核态"},
    {"TCP round trip", "TCP 往返时间"},
    {"The generator was the limit: the figures show this machine, not the target.",
     "发压端是瓶颈：结果反映的是本机，而不是被测对象。"},
    {"This machine", "本机"},
    {"try", "建议"},
    {"user", "用户态"},
    {"verdict", "判定"},
    {"wake-up", "唤醒开销"},
    {"Warnings", "警告"},
    {"worker", "个工作进程"},
    {"workers", "个工作进程"},
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
