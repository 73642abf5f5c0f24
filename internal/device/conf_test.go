package device

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestParseConf: PyTorch's keys and values, those of its own tests among them.
func TestParseConf(t *testing.T) {
	list := [16]int64{8, 8, 8, 8, 8, 8, 8, 2, 4, 2, 4, 1, 1, 1, 1, 1}
	for text, want := range map[string]Conf{
		"":                      {},
		" , ":                   {},
		"max_split_size_mb:128": {MaxSplit: 128 << 20},
		" max_split_size_mb : 20 , max_non_split_rounding_mb:40,":                                        {MaxSplit: 20 << 20, MaxNonSplitRounding: 40 << 20},
		"large_segment_size_mb:10,max_split_size_mb:12":                                                  {LargeSegment: 10 << 20, MaxSplit: 12 << 20},
		"roundup_power2_divisions:4":                                                                     {Divisions: UniformDivisions(4)},
		"roundup_power2_divisions:0":                                                                     {},
		"roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1]":                                   {Divisions: list},
		"roundup_power2_divisions:[4:2,16:4]":                                                            {Divisions: [16]int64{2, 2, 2, 0, 4}},
		"roundup_power2_divisions:[>:8]":                                                                 {Divisions: UniformDivisions(8)},
		"roundup_power2_divisions:[32768:2,>:4]":                                                         {Divisions: UniformDivisions(2)},
		"roundup_power2_divisions:[65536:2]":                                                             {Divisions: UniformDivisions(2)},
		"roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1], garbage_collection_threshold:0.8": {Divisions: list, GCThreshold: 0.8},
		"per_process_memory_fraction:0.5":                                                                {Fraction: 0.5},
		"per_process_memory_fraction:1":                                                                  {Fraction: 1},
		"expandable_segments:True":                                                                       {Expandable: true},
		"expandable_segments:False":                                                                      {},
		"expandable_segments:True,expandable_segments_reserve:40G":                                       {Expandable: true, Reserve: 40 << 30},
		"expandable_segments_reserve:0.25":                                                               {ReservePart: 0.25},
		"backend:native,pinned_num_register_threads:1,release_lock_on_cudamalloc:False":                  {},
	} {
		got, err := ParseConf(text)
		want.Text = text
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
		if err := got.Check(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"expandable_segments:true":                      "want True or False",
		"expandable_segments:1":                         "want True or False",
		"expandable_segment:True":                       "did you mean expandable_segments?",
		"max_split_size_mb":                             "no value",
		"max_split_size_mb:":                            "no value",
		"max_split_size_mb:19":                          "20.00 MiB or more",
		"max_split_size_mb:1e3":                         "number of MiB",
		"max_split_size_mb:-20":                         "number of MiB",
		"max_split_size_mb:9999999999999":               "number of MiB",
		"max_split_size_mb:20,max_split_size_mb:30":     "twice",
		"max_split_size_mb:20,large_segment_size_mb:32": "32.00 MiB or more",
		"large_segment_size_mb:8":                       "10 or more",
		"large_segment_size_mb:21":                      "even",
		"garbage_collection_threshold:1":                "between 0 and 1",
		"garbage_collection_threshold:0":                "between 0 and 1",
		"garbage_collection_threshold:NaN":              "between 0 and 1",
		"per_process_memory_fraction:0":                 "above 0",
		"per_process_memory_fraction:1.5":               "up to 1",
		"roundup_power2_divisions:3":                    "power of two",
		"roundup_power2_divisions:[64:8":                "brackets",
		"roundup_power2_divisions:[64:[8]]":             "brackets",
		"roundup_power2_divisions:[]":                   "power of two",
		"roundup_power2_divisions:[64:8,32:2]":          "order",
		"roundup_power2_divisions:[64:8,64:2]":          "order",
		"roundup_power2_divisions:[>:8,>:2]":            "order",
		"roundup_power2_divisions:[>:8,64:2]":           "order",
		"roundup_power2_divisions:[x:8]":                "power of two",
		"roundup_power2_divisions:[63:8]":               "power of two",
		"expandable_segments_reserve:2":                 "up to 1",
		"expandable_segments_reserve:40X":               "40G",
		"expandable_segments_reserve:G":                 "40G",
		"expandable_segments_reserve:-1G":               "40G",
		"expandable_segments_reserve:99999999T":         "40G",
		"backend:cudaMallocAsync":                       "only native will do",
		"pinned_use_background_threads:True":            "kept by the engine",
		"pinned_reserve_segment_size_mb:5":              "kept by the engine",
		"expandable_segments_reserve_by_class:[a:1]":    "expandable_segments_reserve says",
		"max_split_size_mb:128,,garbage:.5":             "is unknown; there are backend, ",
	} {
		if got, err := ParseConf(text); err == nil || !strings.Contains(err.Error(), want) || got != (Conf{}) {
			t.Errorf("%q: %+v, %v; want an error with %q", text, got, err, want)
		}
	}
}

// TestConfKeys: every key that PyTorch 2.15 reads has a meaning, or is refused with the reason unless its value asks for what is
// done in any case; twice in the same way. Of each a value that is taken, if any is, and one that is not, with what is said.
func TestConfKeys(t *testing.T) {
	rows := map[string]struct {
		taken, refused, why string
		means               bool // the value changes the configuration
	}{
		"max_split_size_mb":                    {"64", "0", "above 0", true},
		"max_non_split_rounding_mb":            {"64", "x", "above 0", true},
		"large_segment_size_mb":                {"40", "-1", "above 0", true},
		"garbage_collection_threshold":         {"0.6", "1.5", "between 0 and 1", true},
		"roundup_power2_divisions":             {"8", "7", "power of two", true},
		"expandable_segments":                  {"True", "yes", "True or False", true},
		"expandable_segments_reserve":          {"2G", "2X", "amount like 40G", true},
		"per_process_memory_fraction":          {"0.5", "2", "up to 1", true},
		"backend":                              {"native", "cudaMallocAsync", "only native will do", false},
		"release_lock_on_cudamalloc":           {"False", "True", "order in which it changes hands", false},
		"release_lock_on_hipmalloc":            {"False", "True", "order in which it changes hands", false},
		"throw_on_cudamalloc_oom":              {"False", "True", "program can catch", false},
		"graph_capture_record_stream_reuse":    {"False", "True", "stay until its end", false},
		"expandable_segments_reserve_by_class": {"", "[a:1]", "reserve as many addresses", false},
		"pinned_use_cuda_host_register":        {"False", "True", "kept by the engine", false},
		"pinned_use_hip_host_register":         {"False", "True", "kept by the engine", false},
		"pinned_num_register_threads":          {"1", "8", "only 1 will do", false},
		"pinned_use_background_threads":        {"False", "True", "kept by the engine", false},
		"pinned_reserve_segment_size_mb":       {"", "64", "kept by the engine", false},
		"pinned_free_catch_all":                {"False", "True", "kept by the engine", false},
		"pinned_max_round_threshold_mb":        {"", "64", "kept by the engine", false},
		"pinned_max_cached_size_mb":            {"", "64", "kept by the engine", false},
	}
	if got, want := slices.Sorted(maps.Keys(confKeys)), slices.Sorted(maps.Keys(rows)); !slices.Equal(got, want) {
		t.Errorf("keys: %v\nwant: %v", got, want)
	}
	for key, r := range rows {
		for range 2 {
			_, err := ParseConf(key + ":" + r.refused)
			if err == nil || !strings.Contains(err.Error(), r.why) || strings.Count(err.Error(), "will do") > 1 || !strings.Contains(err.Error(), key) {
				t.Errorf("%s:%s: %v; want an error with %q", key, r.refused, err, r.why)
			}
		}
		if r.taken == "" {
			continue
		}
		c, err := ParseConf(key + ":" + r.taken)
		c.Text = ""
		if err != nil || (c != Conf{}) != r.means {
			t.Errorf("%s:%s: %+v, %v", key, r.taken, c, err)
		}
	}
	if _, err := ParseConf("max_split_size_mg:64"); err == nil || !strings.Contains(err.Error(), "did you mean max_split_size_mb?") {
		t.Error(err)
	}
}

// TestConfigure: settings of a live allocator change while nothing is reserved, and only then.
func TestConfigure(t *testing.T) {
	a := NewAllocator(newFake(1<<30), Config{Conf: Conf{MaxSplit: 30 * mib}})
	b := alloc(t, a, 1, 0)
	c, err := ParseConf("expandable_segments:True,per_process_memory_fraction:0.5")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Configure(c); err == nil || !strings.Contains(err.Error(), "2.00 MiB reserved") {
		t.Error(err)
	}
	a.Free(b)
	mustDo(t, a.EmptyCache())
	mustDo(t, a.Configure(c))
	if a.Configure(Conf{GCThreshold: 2}) == nil {
		t.Error("a threshold of 2")
	}
	if got := a.Settings(); got.Text != c.Text || !got.Expandable || got.MaxSplit != math.MaxInt64 || a.Limit() != 1<<29 {
		t.Errorf("%+v, limit %d", got, a.Limit())
	}
	wantStats(t, a, map[string]int64{"max_split_size": -1})
	if b := alloc(t, a, 1, 0); b.seg == nil {
		t.Error("the segment is not expandable")
	}
	check(t, a)
}

// TestConfOn: what does not apply to the host's memory is left out; a device without a size has no fraction.
func TestConfOn(t *testing.T) {
	host, small := newFake(0), newFake(1<<30)
	host.info.Host = true
	c := Conf{Expandable: true, MaxSplit: 30 * mib}
	if c.On(host) != (Conf{MaxSplit: 30 * mib}) || c.On(small) != c {
		t.Errorf("%+v, %+v", c.On(host), c.On(small))
	}
	if f := (Conf{Fraction: 0.5}); f.CheckFor(host) == nil || f.CheckFor(small) != nil {
		t.Error(f.CheckFor(host), f.CheckFor(small))
	}
}

func FuzzParseConf(f *testing.F) {
	for _, s := range []string{"", "max_split_size_mb:128", "roundup_power2_divisions:[64:8,>:1],garbage_collection_threshold:0.8", "[", "a:[", "a:]",
		"expandable_segments:True,expandable_segments_reserve:1T", "large_segment_size_mb:22", "backend:native"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConf(text)
		if err != nil {
			return
		}
		if err := c.Check(); err != nil || c.Fraction < 0 || c.Fraction > 1 {
			t.Errorf("%q is accepted, and gives %+v: %v", text, c, err)
		}
		a := NewAllocator(newFake(1<<30), Config{Conf: c})
		if b, err := a.Alloc(1000, 0); err == nil {
			a.Free(b)
		}
		if err := a.Check(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// TestConfWith changes a key wherever it stands in a text, and refuses what the whole text is refused for.
func TestConfWith(t *testing.T) {
	for _, c := range []struct{ text, key, value, want string }{
		{"", "expandable_segments", "True", "expandable_segments:True"},
		{"expandable_segments:False", "expandable_segments", "True", "expandable_segments:True"},
		{"max_split_size_mb:128, roundup_power2_divisions:[256:1,>:8],", "max_split_size_mb", "30", "roundup_power2_divisions:[256:1,>:8],max_split_size_mb:30"},
		{"large_segment_size_mb:64", "max_split_size_mb", "30", ""},
		{"max_split_size_mb:128", "max_split_size_mb", "3", ""},
	} {
		conf, err := ParseConf(c.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := conf.With(c.key, c.value)
		if (err == nil) != (c.want != "") || got.Text != c.want {
			t.Errorf("%q with %s:%s is %q, %v; want %q", c.text, c.key, c.value, got.Text, err, c.want)
		}
	}
}
