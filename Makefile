# Entry points. Meson does the work; every target first makes sure that the Debian packages it needs are there.
BUILD := build
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: build run serve test bench soak install clean format help

build:
	@tools/ensure-packages build
	@test -f $(BUILD)/build.ninja || meson setup --prefix=$(PREFIX) $(BUILD)
	@ninja -C $(BUILD)
	@ln -sf src/cli/gabion $(BUILD)/gabion

run: build
	@tools/demo

# SERVE="--listen 0.0.0.0:3000 ..." adds options.
serve: build
	@$(BUILD)/gabion serve $(SERVE)

test:
	@tools/ensure-packages build test
	@tools/test

bench: build
	@tools/ensure-packages bench
	@bench/run

soak:
	@tools/ensure-packages build test
	@tools/soak

install: build
	@meson configure $(BUILD) --prefix=$(PREFIX)
	@meson install -C $(BUILD) $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

clean:
	rm -rf build build-asan build-fuzz build-aarch64 build-aarch64-sysroot

format:
	@tools/ensure-packages test
	@tools/check-format --fix

help:
	@echo 'make [build]   compile; build/gabion runs without installation'
	@echo 'make run       compile, then show what a sandbox does (tools/demo)'
	@echo 'make serve     compile, then serve sandboxes on 127.0.0.1:3000 (needs root)'
	@echo 'make test      everything; tools/test STAGE... runs a part (tools/test --list)'
	@echo 'make bench     start-up and run times beside other sandboxes'
	@echo 'make soak      every fuzzer for GABION_SOAK_SECONDS (300) seconds, kills, aarch64'
	@echo 'make install   into PREFIX ($(PREFIX)), below DESTDIR if given'
	@echo 'make format    apply .clang-format'
	@echo 'make clean     remove the build folders'
