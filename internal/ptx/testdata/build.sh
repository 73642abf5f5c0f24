#!/bin/sh
# Makes the .ptx of this folder from the .cu, with clang 19 alone (Debian package clang-19): no NVIDIA header or tool.
set -eu
cd "$(dirname "$0")"
for k in elementwise reduce sgemm transpose mma; do
	clang-19 -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx74 \
		-O3 -ffp-contract=on -include shim.h -S "$k.cu" -o "$k.ptx"
done
