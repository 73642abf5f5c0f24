package nvtx_test

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/nvtx"
	"github.com/warpline-ml/warpline/internal/nvtx/nvtxtest"
)

// TestTool: a tool attaches by the interface of NVTX, and is told of ranges, which cross each other, and of marks.
func TestTool(t *testing.T) {
	x := nvtxtest.New(t)
	tool, err := nvtx.Attached()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := nvtx.Attached(); again != tool || err != nil {
		t.Errorf("asked again: another tool, or %v", err)
	}
	a := tool.Start("blocks.0.attn")
	b := tool.Start("cut\x00here")
	tool.Mark("matmul")
	tool.End(a)
	tool.End(b)
	tool.End(0)
	const want = "start blocks.0.attn\nstart cut\nmark matmul\nend 1234567800000001\nend 1234567800000002\n"
	if got := x.Told(t); got != want {
		t.Errorf("told\n%s\nwant\n%s", got, want)
	}
}

// TestNone: no tool is no error; one that cannot be told is, and says what to do.
func TestNone(t *testing.T) {
	t.Setenv(nvtx.PathEnv, "")
	if tool, err := nvtx.Attached(); tool != nil || err != nil {
		t.Errorf("%v, %v", tool, err)
	}
	for path, want := range map[string]string{"tool.so": "absolute", "/nowhere/tool.so": "nowhere"} {
		t.Setenv(nvtx.PathEnv, path)
		if _, err := nvtx.Attached(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(advice.HintOf(err), nvtx.PathEnv) {
			t.Errorf("%s: %v", path, err)
		}
	}
	x := nvtxtest.New(t)
	x.Refuse(t)
	if _, err := nvtx.Attached(); err == nil || !strings.Contains(err.Error(), "does not attach") {
		t.Error(err)
	}
	nvtxtest.New(t, "InitializeInjectionNvtx2")
	if _, err := nvtx.Attached(); err == nil || !strings.Contains(err.Error(), "InitializeInjectionNvtx2") {
		t.Error(err)
	}
}
