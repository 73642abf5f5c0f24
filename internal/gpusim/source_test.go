package gpusim

import (
	"fmt"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// TestSource: devices that load a source share the code of its kernels, unless it has variables, and what a launch on one reads and
// writes is that device's, also where all have memory at the same addresses and launch at the same time, and other cards.
func TestSource(t *testing.T) {
	const plain, variable = "", ".global .u32 total = 5;\n"
	for name, declared := range map[string]string{"plain": plain, "a variable": variable} {
		t.Run(name, func(t *testing.T) {
			body := "ld.global.u32 %v, [%out]; add.u32 %v, %v, 1; st.global.u32 [%out], %v;"
			if declared == "" {
				body += "\nmov.u32 %v, %nsmid; st.global.u32 [%out+4], %v;"
			} else {
				body += "\nmov.u64 %at, total; atom.global.add.u32 %v, [%at], 1; st.global.u32 [%out+4], %v;"
			}
			text := wrap(".reg .u32 %v;\n", body)
			const head = ".address_size 64\n"
			text = text[:len(".version 7.4\n.target sm_80\n"+head)] + declared + text[len(".version 7.4\n.target sm_80\n"+head):]
			m, err := ptx.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			s := NewSource(m)
			const devices, lanes, launches = 3, 32, 40
			ways := []Options{{}, {Checks: Memcheck | Initcheck | Racecheck}, {Checks: Globalcheck}, {Schedule: Independent}, {Counters: true}, {Numerics: Exact}}
			var rigs [devices]*rig
			var kernels [devices]*Kernel
			var at [devices]uint64
			var work sync.WaitGroup
			for i := range devices {
				d := NewDevice(NewCard("GPU", 1<<30, 8<<i, [2]int{8, 0}), false)
				p, err := d.LoadSource(s)
				if err != nil {
					t.Fatal(err)
				}
				rigs[i], kernels[i] = &rig{t, d, p}, p.Kernel("k")
				at[i] = rigs[i].upload(make([]uint64, lanes), fmt.Sprint("numbers of device ", i))
				work.Go(func() {
					for n := range launches * (i + 1) {
						if _, err := d.Launch(kernels[i], d1(1), d1(lanes), 0, pack(kernels[i], at[i], at[i]), ways[n%len(ways)]); err != nil {
							t.Errorf("device %d, launch %d: %v", i, n, err)
							return
						}
					}
				})
			}
			work.Wait()
			for i, r := range rigs {
				got := download[uint32](r, at[i], 2*lanes)
				most := uint32(0)
				for lane := range lanes {
					if got[2*lane] != uint32(launches*(i+1)) {
						t.Errorf("device %d: lane %d has %d after %d launches", i, lane, got[2*lane], launches*(i+1))
					}
					most = max(most, got[2*lane+1])
				}
				if want := uint32(8 << i); declared == "" && most != want {
					t.Errorf("device %d says that it has %d multiprocessors, and has %d", i, most, want)
				}
				if want := uint32(5 + lanes*launches*(i+1) - 1); declared != "" && most != want {
					t.Errorf("device %d: the variable was %d before the last lane's turn, want %d", i, most, want)
				}
			}
			shared := true
			if n := len(kernels[0].code); n != len(ways) {
				t.Errorf("%d forms of code for %d ways to launch", n, len(ways))
			}
			for v, c := range kernels[0].code {
				shared = shared && kernels[1].code[v] == c && kernels[2].code[v] == c
			}
			if shared != (declared == "") {
				t.Errorf("the devices share code: %v", shared)
			}
		})
	}
}
