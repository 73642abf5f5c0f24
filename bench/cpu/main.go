// Command cpu runs the race with PyTorch on this machine's processor, in turns in one run, and says of each bar whether it
// is met:
//
//	go run ./bench/cpu                  builds an environment with PyTorch for the run, and removes it
//	go run ./bench/cpu -python python3  takes one that is there
//	go run ./bench/cpu -python none     measures ours alone
//	go run ./bench/cpu -go gomlx,gonum  shows other libraries in Go beside
//
// PyTorch runs with glibc's thresholds of memory raised, so that it keeps what it allocates, which is what is judged, and
// beside that as people run it. A bar is met when the lower 95 % bound of the ratio of times reaches it, less 0.02.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/bench/peer"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/bench"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/par"
	"github.com/warpline-ml/warpline/tensor"

	_ "embed"
)

var (
	python  = flag.String("python", "", "Python with PyTorch and torchvision; empty: an environment that is built for the run; none: ours alone")
	rounds  = flag.Int("rounds", 9, "turns of each")
	threads = flag.String("threads", "1,"+strconv.Itoa(par.Threads()), "numbers of threads, separated by commas")
	pick    = flag.String("cases", "", "names of cases, or of benches, separated by commas; all if empty")
	budget  = flag.Duration("time", 60*time.Millisecond, "time of one turn at least")
	clock   = flag.String("clock", "wall", "what one thread is measured by: wall, or cpu, the process's own time, on a machine that is busy")
	compile = flag.Bool("compile", false, "show torch.compile beside the steps of GPT; it takes minutes")
	gos     = flag.String("go", "", "other libraries in Go to show beside, separated by commas: gomlx, gonum")
	first   = flag.Bool("first", false, "make one step of the MLP and end: what the start of a process is measured by")
)

//go:embed torch_race.py
var script string

// raised are the settings with which PyTorch keeps what it has allocated.
var raised = []string{"MALLOC_MMAP_THRESHOLD_=8589934592", "MALLOC_TRIM_THRESHOLD_=8589934592"}

func main() {
	log.SetFlags(0)
	flag.Parse()
	if *first {
		step(bench.Find("train", "mlp"))()
		return
	}
	counts := numbers(*threads)
	known()
	r := &runner{}
	defer r.prepare()()
	fmt.Printf("%s, level %v; %s %s/%s, %d rounds\n\n", cpufeat.Describe().Model, cpufeat.Active(), runtime.Version(), runtime.GOOS, runtime.GOARCH, *rounds)
	header()
	for i := range race {
		if !picked(race[i].bench, race[i].name) {
			continue
		}
		for _, n := range counts {
			if race[i].threads == nil || slices.Contains(race[i].threads, n) {
				r.run(&race[i], n)
			}
		}
	}
	if picked("start", beside["start"]) {
		r.start()
	}
	if picked("memory", beside["memory"]) {
		r.memory()
	}
	r.verdict()
}

func picked(names ...string) bool {
	list := strings.Split(*pick, ",")
	return *pick == "" || slices.ContainsFunc(names, func(s string) bool { return slices.Contains(list, s) })
}

// beside are the measurements that are no rows: whole processes, by their benches and cases.
var beside = map[string]string{"start": "first-step", "memory": "peak"}

// known ends the program at a name that is of no case, before anything is started.
func known() {
	names := []string{""}
	for bench, name := range beside {
		names = append(names, bench, name)
	}
	for _, r := range race {
		names = append(names, r.bench, r.name)
	}
	for _, s := range strings.Split(*pick, ",") {
		if !slices.Contains(names, s) {
			slices.Sort(names)
			log.Fatalf("-cases %s: there is no %q; there are %s", *pick, s, strings.Join(slices.Compact(names)[1:], ", "))
		}
	}
}

func numbers(list string) (out []int) {
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			log.Fatalf("-threads %s: give numbers from 1, separated by commas", list)
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// runner has both sides.
type runner struct {
	kept, plain    *peer.Peer // PyTorch, with raised thresholds and as people run it
	others         []goPeer
	single         map[*row]float64 // our seconds with one thread
	best           map[*row]float64 // PyTorch's better seconds of all numbers of threads
	passed, missed int
}

// prepare starts the peers; the function that it returns removes what it has made.
func (r *runner) prepare() (clean func()) {
	clean = func() {}
	path := *python
	switch path {
	case "none":
		path = ""
	case "":
		path, clean = environment()
	}
	r.kept, r.plain = peer.Python(path, script, raised...), peer.Python(path, script)
	for _, p := range []*peer.Peer{r.kept, r.plain} {
		if p != nil { // it takes seconds to import PyTorch, with a core that the first rounds of ours would lack
			p.Ask("ops", "add-4", 4, "f32", "nchw", 1, 1, "wall")
		}
	}
	r.others = goPeers(*gos)
	r.single, r.best = map[*row]float64{}, map[*row]float64{}
	*python = path
	return clean
}

// environment builds a folder with a Python of its own.
func environment() (python string, remove func()) {
	dir, err := os.MkdirTemp("", "warpline-race")
	if err != nil {
		log.Fatal(err)
	}
	remove = func() { os.RemoveAll(dir) }
	python = filepath.Join(dir, "bin", "python")
	for _, args := range [][]string{{"python3", "-m", "venv", dir}, {python, "-m", "pip", "install", "-q", "torch==2.15.*", "torchvision", "numpy"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			remove()
			log.Fatalf("%s: %v; give a Python that has PyTorch to -python", strings.Join(args, " "), err)
		}
	}
	return python, remove
}

// step is a case at its own size on a device of its own, ready to run.
func step(c *bench.Case) func() { return prepared(c, c.Sizes[0], dtype.F32).Turn }

func prepared(c *bench.Case, n int, dt dtype.DType) bench.Work {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		log.Fatal(err)
	}
	w, err := c.Make(env, n, dt)
	if err != nil {
		log.Fatal(err)
	}
	return w
}
