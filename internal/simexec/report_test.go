package simexec

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// TestAdviceOfModules: kernels of one name from two modules are told of by the lines of their own.
func TestAdviceOfModules(t *testing.T) {
	p := newReport(Config{}, simcuda.Config{})
	launch := func(image string, lines ...int) {
		rep := &gpusim.Report{}
		for _, l := range lines {
			rep.Advice = append(rep.Advice, gpusim.Finding{Check: gpusim.Synccheck, Line: l, Msg: "doubtful", Count: 1})
		}
		p.ran(simcuda.Run{Kernel: "k", Report: rep}, []byte(image))
	}
	launch("one\ntwo\n", 2)
	launch("three\nfour\n", 1)
	launch("one\ntwo\n", 2, 2)
	list := p.result().Advice
	if len(list) != 2 || list[0].PTX != "two" || list[0].Count != 3 || list[1].PTX != "three" || list[1].Count != 1 {
		t.Errorf("%+v", list)
	}
}

// TestHints: a module that the card or its driver does not take is told of with what to do, in the text and in the JSON.
func TestHints(t *testing.T) {
	p := newReport(Config{}, simcuda.Config{})
	p.failed("cuModuleLoadData", driver.NoBinaryForGPU, "the module is for sm_90a and later")
	p.failed("cuModuleLoadData", driver.UnsupportedPTXVersion, "")
	p.failed("cuMemAlloc_v2", driver.OutOfMemory, "")
	r := p.result()
	for i, says := range []string{"--card", ".version"} {
		if hint := r.Failed[i].Hint; !strings.Contains(hint, says) || !strings.Contains(r.Text(100), "hint: "+hint+"\n") {
			t.Errorf("%+v, want %s\n%s", r.Failed[i], says, r.Text(100))
		}
	}
	if r.Failed[2].Hint != "" {
		t.Errorf("%+v", r.Failed[2])
	}
}
