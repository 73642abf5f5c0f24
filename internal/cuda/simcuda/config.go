package simcuda

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// Config says which GPUs there are and how strictly they are simulated. The zero Config is one of cards.Default under
// memcheck, with effects at the call.
type Config struct {
	Card    string // of package cards
	Devices int    // 0 means 1; at most 16

	Checks   gpusim.Check // memcheck is always on
	Seed     uint64       // of the order of blocks, warps and lanes, and of late effects
	Schedule gpusim.Schedule
	Numerics gpusim.Numerics

	// LateEffects lets asynchronous work take effect when something waits for it and not before, streams interleaved by
	// Seed. A Seed other than 0 lets some of it happen earlier.
	LateEffects bool

	// Collect keeps findings that stop no kernel for Findings, which the caller must ask for; otherwise they fail the
	// context. No setting of ParseConfig does that: nobody would look at what was collected.
	Collect bool

	Cores     int   // for one launch; 0 means as many as there are
	StepLimit int64 // instructions of all warps of a block; 0 means 1e10
	Counters  bool  // Reports count memory transactions
	Warm      bool  // kernels find in L2 what fits, as those of a loop do
	Clock     bool  // count those of some blocks of each kind of launch, for its time
	RealHost  bool  // what the program takes between calls passes on the host's virtual clock too

	// Off executes nothing: calls are judged as ever, kernels and fills write nothing and take no time, copies move nothing, and
	// the host reads zeros. What a program asks of the driver, memory above all, shows for sizes that take too long to simulate.
	// With Clock a few blocks of each kind of launch run all the same, on what nothing has written but small copies from the host,
	// and everything takes its time.
	Off bool

	// Caller names who makes the call under way, "train.cu:12", for what is said of memory: who made it and who freed it. nil: nobody
	// is named but the call. It must not call the driver.
	Caller func() string

	Host     Host                                       // whose memory copies name; nil: this process
	Stop     <-chan struct{}                            // closed to end launches early, which fails the context; nil for never
	Output   io.Writer                                  // of vprintf; nil discards it
	OnLaunch func(kernel string, report *gpusim.Report) // after each kernel ran; must not call the driver
	OnRun    func(r Run)                                // likewise, and when a copy found something
}

// Run is what became of a launch.
type Run struct {
	Module driver.Module  // of the kernel; 0 for a copy
	Kernel string         // empty for a copy
	Report *gpusim.Report // of a copy nothing but the finding
	Fault  *gpusim.Fault  // that ended it; nil without
}

// words are what ParseConfig knows, as its errors list it.
const words = "check=all|none|memcheck+initcheck+synccheck+racecheck+global, seed=N, schedule=reconverge|independent, numerics=float32|exact|truncating, late, clock, warm, host=real|virtual, cores=N, steps=N"

// ParseConfig reads the checks and schedules of a Config, as in "check=all,seed=3,schedule=independent,late".
func ParseConfig(text string) (Config, error) {
	var c Config
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		if !c.set(word) {
			return Config{}, fmt.Errorf("simulator setting %q: unknown or without a proper value; there are %s", word, words)
		}
	}
	return c, nil
}

// set takes a word and reports whether it is one.
func (c *Config) set(word string) bool {
	key, value, hasValue := strings.Cut(word, "=")
	var err error
	switch {
	case word == "late":
		c.LateEffects = true
	case word == "clock":
		c.Clock = true
	case word == "warm":
		c.Warm = true
	case word == "host=real", word == "host=virtual":
		c.RealHost = value == "real"
	case !hasValue:
		return false
	case key == "check":
		return c.setChecks(value)
	case key == "seed":
		c.Seed, err = strconv.ParseUint(value, 0, 64)
	case key == "cores":
		c.Cores, err = strconv.Atoi(value)
		return err == nil && c.Cores > 0 && c.Cores <= 16*runtime.NumCPU()
	case key == "steps":
		c.StepLimit, err = strconv.ParseInt(value, 0, 64)
		return err == nil && c.StepLimit > 0
	case word == "schedule=reconverge":
		c.Schedule = gpusim.Reconverge
	case word == "schedule=independent":
		c.Schedule = gpusim.Independent
	case word == "numerics=float32":
		c.Numerics = gpusim.Float32
	case word == "numerics=exact":
		c.Numerics = gpusim.Exact
	case word == "numerics=truncating":
		c.Numerics = gpusim.Truncating
	default:
		return false
	}
	return err == nil
}

func (c *Config) setChecks(list string) bool {
	switch list {
	case "all":
		c.Checks = gpusim.AllChecks
		return true
	case "none":
		c.Checks = gpusim.Memcheck
		return true
	}
	var set gpusim.Check
	for name := range strings.SplitSeq(list, "+") {
		k := checkNamed(name)
		if k == 0 {
			return false
		}
		set |= k
	}
	c.Checks = set
	return true
}

// checkNamed is the check of a name, 0 if there is none.
func checkNamed(name string) gpusim.Check {
	for k := gpusim.Memcheck; k <= gpusim.AllChecks; k <<= 1 {
		if k.String() == name {
			return k
		}
	}
	return 0
}

// blockGap is more than a row of most kernels' tiles, and little beside what a check costs.
const blockGap = 4 << 10

// gap is what an allocator should leave between blocks: nothing where only memcheck, which is always on, would see it, so
// that such a card has as much memory as a real one.
func (c *Config) gap() int64 {
	if c.Checks&^gpusim.Memcheck == 0 {
		return 0
	}
	return blockGap
}
