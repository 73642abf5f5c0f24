package tensor_test

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// confs are configurations of the allocator, each with a key that changes what is reserved or when.
var confs = []string{
	"", "expandable_segments:True", "expandable_segments:True,large_segment_size_mb:10", "expandable_segments:True,expandable_segments_reserve:1G",
	"max_split_size_mb:20", "max_split_size_mb:20,max_non_split_rounding_mb:30", "large_segment_size_mb:40", "roundup_power2_divisions:2",
	"roundup_power2_divisions:[1:8,4:2,>:4]", "garbage_collection_threshold:0.01,per_process_memory_fraction:0.01", "per_process_memory_fraction:0.005",
	"expandable_segments:True,garbage_collection_threshold:0.01,per_process_memory_fraction:0.005,roundup_power2_divisions:4",
}

// TestConfsOnEngines: a dry run agrees with the simulated card to the byte, in every counter, whatever the configuration.
// Checks would put room between values.
func TestConfsOnEngines(t *testing.T) {
	t.Setenv("WARPLINE_SIM", "check=none")
	reserved := map[int64]bool{}
	for _, conf := range confs {
		dry, sim := trainOnce(t, "null:rtx-3090", conf), trainOnce(t, "sim:rtx-3090", conf)
		if len(dry) != len(sim) {
			t.Errorf("%q: %d and %d counters", conf, len(dry), len(sim))
		}
		for name, n := range dry {
			if sim[name] != n {
				t.Errorf("%q: %s is %d on the null device, %d on the simulated card", conf, name, n, sim[name])
			}
		}
		reserved[sim["reserved_bytes.all.peak"]] = true
	}
	if len(reserved) < 4 {
		t.Errorf("the configurations make %d differences in what is reserved", len(reserved))
	}
}

// trainOnce is what a training of three steps, with values of other sizes that come and go, leaves in the counters.
func trainOnce(t *testing.T, name, conf string) map[string]int64 {
	t.Helper()
	env := fresh(t, name)
	if err := env.Device().SetAllocConf(conf); err != nil {
		t.Fatal(err)
	}
	layer := nn.NewLinear(env, 20, 30)
	opt := optim.NewAdamW(nn.Params(layer), optim.AdamWConfig{LR: 0.1})
	for i, rows := range []int{40, 10, 60} {
		batch, scope := env.Scope()
		large := batch.Zeros(3<<20 + 1000*i)
		for j := range 4 {
			other, inner := batch.Scope()
			other.Zeros(1<<18 + 5000*i)
			batch.Zeros(1<<(13+2*j) + 3000*i)
			inner.End()
		}
		loss := layer.Forward(batch.Ones(rows, 20)).Square().Mean()
		loss.Backward()
		opt.Step()
		_ = large
		scope.End()
	}
	env.Sync()
	m := env.Device().MemoryStats()
	if err := env.Device().EmptyCache(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSetAllocConf: what is wrong, or too late, is said.
func TestSetAllocConf(t *testing.T) {
	env := fresh(t, "null:rtx-3090")
	d := env.Device()
	for conf, want := range map[string]string{"expandable_segment:True": "did you mean expandable_segments?", "max_split_size_mb:1": "20.00 MiB or more"} {
		if err := d.SetAllocConf(conf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", conf, err)
		}
	}
	scope, end := env.Scope()
	scope.Ones(10)
	if err := d.SetAllocConf(""); err == nil || !strings.Contains(err.Error(), "empty the cache") {
		t.Error(err)
	}
	end.End()
	if err := d.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	if err := d.SetAllocConf("expandable_segments:True"); err != nil {
		t.Error(err)
	}
	if d.MemoryStats()["num_device_alloc"] == 0 {
		t.Error("no allocation is counted")
	}
	d.ResetMemoryStats()
	if d.MemoryStats()["num_device_alloc"] != 0 {
		t.Error("counters are not reset")
	}
	if err := fresh(t, "cpu").Device().SetAllocConf("expandable_segments:True"); err == nil || !strings.Contains(err.Error(), "virtual memory management") {
		t.Error(err)
	}
	t.Setenv("WARPLINE_ALLOC_CONF", "expandable_segments:True,per_process_memory_fraction:0.5")
	fresh(t, "cpu") // whose memory has addresses apart from it anyway
	if m := fresh(t, "sim:rtx-3090").Ones(10).Env().Device().Memory(); m.Reserved.Current != 2<<20 {
		t.Errorf("%+v", m)
	}
	t.Setenv("WARPLINE_ALLOC_CONF", "expandable_segments")
	if _, err := tensor.Fresh("null:rtx-3090"); err == nil || !strings.Contains(err.Error(), "WARPLINE_ALLOC_CONF") || !strings.Contains(err.Error(), "no value") {
		t.Error(err)
	}
}
