package cards

import (
	"strings"
	"testing"
)

// devices are numbers and names as the driver has them (g_nv_name_released.h of NVIDIA's open kernel modules, MIT licence).
const devices = `
1340 GeForce 830M
1380 GeForce GTX 750 Ti
13C2 GeForce GTX 970
1401 GeForce GTX 960
15F8 Tesla P100-PCIE-16GB
174D GeForce MX130
17C8 GeForce GTX 980 Ti
1B06 GeForce GTX 1080 Ti
1B38 Tesla P40
1C03 GeForce GTX 1060 6GB
1C82 GeForce GTX 1050 Ti
1E04 GeForce RTX 2080 Ti
1F82 GeForce GTX 1650
2184 GeForce GTX 1660
20B2 A100-SXM4-80GB
20B7 A30
2204 GeForce RTX 3090
2236 A10
2330 H100 80GB HBM3
2335 H200
2342 GH200 480GB
2420 GeForce RTX 3080 Ti Laptop GPU
2484 GeForce RTX 3070
2582 GeForce RTX 3050
2684 GeForce RTX 4090
26B9 L40S
27B8 L4
28E0 GeForce RTX 4060 Laptop GPU
2901 B200
2941 GB200
2B85 GeForce RTX 5090
2C58 GeForce RTX 5090 Laptop GPU
2D83 GeForce RTX 5050
2F04 GeForce RTX 5070
2E12 GB10
3182 B300 SXM6 AC
31C2 GB300`

// computes are the capabilities of cards by the beginning of their names (CUDA C++ Programming Guide).
var computes = []struct {
	name    string
	compute [2]int
}{
	{"GeForce GTX 75", [2]int{5, 0}}, {"GeForce 83", [2]int{5, 0}}, {"GeForce MX13", [2]int{5, 0}}, {"GeForce GTX 9", [2]int{5, 2}}, {"Tesla P100", [2]int{6, 0}}, {"Tesla P40", [2]int{6, 1}},
	{"GeForce GTX 10", [2]int{6, 1}}, {"GeForce GTX 16", [2]int{7, 5}}, {"GeForce RTX 20", [2]int{7, 5}}, {"A100", [2]int{8, 0}}, {"A30", [2]int{8, 0}}, {"A10", [2]int{8, 6}},
	{"GeForce RTX 30", [2]int{8, 6}}, {"GeForce RTX 40", [2]int{8, 9}}, {"L4", [2]int{8, 9}}, {"H100", [2]int{9, 0}}, {"H200", [2]int{9, 0}}, {"GH200", [2]int{9, 0}},
	{"B200", [2]int{10, 0}}, {"GB200", [2]int{10, 0}}, {"B300", [2]int{10, 3}}, {"GB300", [2]int{10, 3}}, {"GeForce RTX 50", [2]int{12, 0}}, {"GB10", [2]int{12, 1}},
}

func TestChipOf(t *testing.T) {
	for line := range strings.SplitSeq(strings.TrimSpace(devices), "\n") {
		number, name, _ := strings.Cut(line, " ")
		var device int
		for _, digit := range number {
			device = device<<4 | strings.IndexRune("0123456789ABCDEF", digit)
		}
		known := false
		for _, c := range computes {
			if !strings.HasPrefix(name, c.name) {
				continue
			}
			known = true
			if chip, ok := ChipOf(device); !ok || chip.Compute != c.compute {
				t.Errorf("%s %s: %+v, %v", number, name, chip, ok)
			}
			break
		}
		if !known {
			t.Errorf("no capability for %s", name)
		}
	}
	for i := range Chips[1:] {
		if Chips[i].Last >= Chips[i+1].First || Chips[i].First > Chips[i].Last {
			t.Errorf("%+v and %+v overlap or are out of order", Chips[i], Chips[i+1])
		}
	}
	if c, ok := ChipOf(0x0001); ok {
		t.Error(c)
	}
}
