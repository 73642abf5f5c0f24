#!/bin/sh
# Compiles kernels with clang alone, without a header, library or tool of NVIDIA's: those of this folder and of ../kernels, or the
# files named,
#
#	sh build.sh my.cu   # writes my.ptx
#
# Debian: apt-get install clang-19; CLANG names another one, and ARCH another target than sm_80.
set -eu
clang=${CLANG:-clang-19}
here=$(cd "$(dirname "$0")" && pwd)

compile() {
	"$clang" -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=${ARCH:-sm_80} -Xclang -target-feature -Xclang +ptx74 \
		-O3 -ffp-contract=on -gline-directives-only -ffile-prefix-map="$PWD"=. \
		-ffile-prefix-map="$("$clang" -print-resource-dir)"=clang -I "$here" -S "$1" -o "${1%.cu}.ptx"
}

if [ $# -gt 0 ]; then
	for file; do compile "$file"; done
	exit
fi
cd "$here"
for k in sum sum_bug tour; do compile "$k.cu"; done
sha256sum cuda.h *.cu sum.ptx sum_bug.ptx tour.ptx > build.sha256 # a test compares: whoever edits a source builds again
cd ../kernels
for k in swish scan; do compile "$k.cu"; done
sha256sum ../sim/cuda.h *.cu *.ptx > build.sha256 # likewise
