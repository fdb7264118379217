# Two commands: `make demo`, `make check`. Meson does the work; see meson.build.
BUILD ?= build

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja:
	@tools/deps build
	@meson setup $(BUILD) >/dev/null

demo: ; @tools/demo $(BUILD)
check: ; @tools/check
bench: all ; @tools/deps bench && test/bench/run --build $(BUILD)
asan: ; @tools/check --only asan
fuzz: ; @tools/fuzz

format:
	@clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	@rm -rf build build-clang build-asan build-fuzz

.PHONY: all demo check bench asan fuzz format clean
