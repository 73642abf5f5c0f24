// Package drivers is what versions of NVIDIA's driver do: the CUDA that each brings, the PTX that it compiles, and the oldest that runs
// what was built with a version of CUDA. It is the one table of these; machines, environments and files of others are judged by it.
package drivers

import (
	"cmp"
	"strconv"
	"strings"
)

// Floor is a version of CUDA with the oldest drivers that run programs built with it.
type Floor struct {
	CUDA           string // "12" is all of 12.x, "10.2" that version alone
	Linux, Windows string
}

// Floors are NVIDIA's: CUDA Toolkit release notes, "Minimum Required Driver Version for CUDA Minor Version Compatibility" (11 and later),
// "CUDA Toolkit and Corresponding Driver Versions" (before). For Windows, that of 13 is the branch, as "CUDA Compatibility" states it.
var Floors = []Floor{
	{"13", "580.65.06", "580.00"},
	{"12", "525.60.13", "528.33"},
	{"11", "450.80.02", "452.39"},
	{"10.2", "440.33", "441.22"},
	{"10.1", "418.39", "418.96"},
	{"10.0", "410.48", "411.31"},
	{"9.2", "396.26", "397.44"},
	{"9.1", "390.46", "391.29"},
	{"9.0", "384.81", "385.54"},
}

// Min returns the oldest driver, on a system as GOOS names it, that runs what was built with a version of CUDA ("12.8", or "12"); empty if
// the version is not in the table.
func Min(cuda, os string) string {
	for _, f := range Floors {
		if cuda == f.CUDA || strings.HasPrefix(cuda, f.CUDA+".") {
			if os == "windows" {
				return f.Windows
			}
			return f.Linux
		}
	}
	return ""
}

// branches are the versions of CUDA that drivers bring, by their branch: release notes, "CUDA Toolkit and Corresponding Driver Versions".
var branches = []struct {
	driver int
	cuda   [2]int
}{
	{610, [2]int{13, 3}}, {595, [2]int{13, 2}}, {590, [2]int{13, 1}}, {580, [2]int{13, 0}}, {575, [2]int{12, 9}}, {570, [2]int{12, 8}}, {565, [2]int{12, 7}},
	{560, [2]int{12, 6}}, {555, [2]int{12, 5}}, {550, [2]int{12, 4}}, {545, [2]int{12, 3}}, {535, [2]int{12, 2}}, {530, [2]int{12, 1}},
	{525, [2]int{12, 0}}, {520, [2]int{11, 8}}, {515, [2]int{11, 7}}, {510, [2]int{11, 6}}, {495, [2]int{11, 5}}, {470, [2]int{11, 4}},
	{465, [2]int{11, 3}}, {460, [2]int{11, 2}}, {455, [2]int{11, 1}}, {450, [2]int{11, 0}}, {440, [2]int{10, 2}},
}

// CUDA returns the version of CUDA that a driver brings, by its branch; 0.0 for one that is older than all of the table.
func CUDA(driver string) [2]int {
	major, _, _ := strings.Cut(driver, ".")
	n, _ := strconv.Atoi(major)
	for _, b := range branches {
		if n >= b.driver {
			return b.cuda
		}
	}
	return [2]int{}
}

// PTXNeeds returns the version of CUDA whose drivers compile a version of the PTX language: 7.0 is of 11.0, and one on for each; but 8.6
// is of 12.7, 9.0 of 13.0 (PTX ISA, release notes). 0.0 for what is older.
func PTXNeeds(version [2]int) [2]int {
	switch {
	case version[0] == 7:
		return [2]int{11, version[1]}
	case version[0] == 8 && version[1] <= 5:
		return [2]int{12, version[1]}
	case version[0] == 8:
		return [2]int{12, version[1] + 1}
	case version[0] >= 9:
		return [2]int{version[0] + 4, version[1]}
	}
	return [2]int{}
}

// Compare orders two versions of the driver by their numbers: 525.60.13 < 525.105.17. What is no number counts as 0.
func Compare(a, b string) int {
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		if order := cmp.Compare(m, n); order != 0 {
			return order
		}
	}
	return 0
}
