#!/bin/sh
# Runs the programs of this folder on simulated GPUs and writes results/: sh run.sh WARPLINE [CXX] [PYTHON]. The times want an idle machine.
set -eu
cd "$(dirname "$0")"
warpline=$1 cxx=${2:-c++} python=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p results
# The program is linked with a library that has the driver's name and functions: the one that it will find.
sh ../../internal/simexec/libcuda/build.sh "$work/libcuda.so.1"
"$cxx" -O2 -Wall -o "$work/launches" launches.cpp "$work/libcuda.so.1"
"$cxx" --version | head -1 >results/launches.txt
for n in "" 1000 1001; do
	status=0
	"$warpline" sim exec -- "$work/launches" $n >>results/launches.txt 2>&1 || status=$?
	echo "exit status $status" >>results/launches.txt
	echo >>results/launches.txt
done
[ -n "$python" ] || exit 0
# Triton compiles to PTX; its assembler is the stand-in, and its cache a fresh folder. Of texts the paths of this machine are left out.
sed "1s|.*|#!$python|" ptxas.py >"$work/ptxas"
chmod +x "$work/ptxas"
export TRITON_PTXAS_PATH="$work/ptxas" TRITON_DEFAULT_FP_FUSION=1
"$python" -c 'import triton; print("Triton", triton.__version__)' >results/triton.txt
for kernel in add add_broken softmax softmax_broken; do
	status=0
	TRITON_CACHE_DIR="$work/cache-$kernel" "$warpline" sim exec -- "$python" triton_driver.py "$kernel" >"$work/out" 2>&1 || status=$?
	{ echo; sed "s|$PWD/||g" "$work/out"; echo "exit status $status"; } >>results/triton.txt
done
