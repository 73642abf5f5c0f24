package mutate

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestX(t *testing.T) {
	src, err := os.ReadFile("../testdata/kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range TestKernels() {
		o, err := Open(string(src), c)
		if err != nil {
			t.Error(err)
			continue
		}
		start := time.Now()
		for _, m := range o.Mutants {
			v := o.Try(m)
			fmt.Println(v.Outcome, v.By, v.Seed, v.Leaves, "|", m.ID, m.Line)
		}
		fmt.Println(c.Kernel, len(o.Mutants), time.Since(start))
	}
}
