//go:build !purego

package cpufeat

import "golang.org/x/sys/cpu"

// detect asks for what the system saves and restores, too: x/sys looks at
// XCR0.
func detect() []Level {
	x := &cpu.X86
	list := []Level{Generic}
	if !x.HasAVX2 || !x.HasFMA || !x.HasBMI2 { // every processor with these has F16C
		return list
	}
	list = append(list, AVX2)
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512CD && x.HasAVX512DQ && x.HasAVX512VL {
		list = append(list, AVX512)
		if x.HasAVX512BF16 {
			list = append(list, AVX512BF16)
		}
	}
	return list
}
