package simexec

import (
	"testing"

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
