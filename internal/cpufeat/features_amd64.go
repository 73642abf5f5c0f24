package cpufeat

import "golang.org/x/sys/cpu"

func features() []string {
	x := &cpu.X86
	return present([]feature{
		{"sse4.2", x.HasSSE42}, {"avx", x.HasAVX}, {"avx2", x.HasAVX2}, {"fma", x.HasFMA},
		{"avx512f", x.HasAVX512F}, {"avx512bw", x.HasAVX512BW}, {"avx512cd", x.HasAVX512CD},
		{"avx512dq", x.HasAVX512DQ}, {"avx512vl", x.HasAVX512VL}, {"avx512vnni", x.HasAVX512VNNI},
		{"avx512bf16", x.HasAVX512BF16}, {"amx-tile", x.HasAMXTile}, {"amx-bf16", x.HasAMXBF16}, {"amx-int8", x.HasAMXInt8},
	})
}
