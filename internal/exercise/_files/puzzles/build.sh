#!/bin/sh
# Compiles the kernels of this folder, or the files named, by clang alone. Debian: apt-get install clang-19; CLANG names another one.
set -eu
clang=${CLANG:-clang-19}
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- "$here"/*.cu
for k; do
	"$clang" -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_75 -Xclang -target-feature -Xclang +ptx74 \
		-O2 -ffp-contract=on -fno-unroll-loops -include "$here/puzzle.h" -S "$k" -o "${k%.cu}.ptx"
	sed -i -e '/^[ \t]*\/\//d' -e 's|[ \t]*//.*||' "${k%.cu}.ptx" # comments of the compiler's own
	sed -i '/./,$!d' "${k%.cu}.ptx"
done
