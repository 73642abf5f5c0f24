// Command oracle judges the simulated GPU by means that do not rest on it. It is run by hand; nothing else in the
// repository needs clang.
//
//	go run ./bench/oracle mutation > bench/oracle/mutation.md
//	go run ./bench/oracle -sample 12 -seed 7 engine > bench/oracle/mutation-engine.md
//	go run ./bench/oracle -clang clang-19 -seed 50000 -n 1000 random >> bench/oracle/report.md
//	go run ./bench/oracle -clang clang-19 -seed 7 -n 204 golden
//
// The first breaks correct kernels and counts what the checks report, the second does so with kernels of the CUDA engine.
// The third generates kernels in C++, compiles each for this machine and to PTX at -O0 and -O1 or -O3, and compares what
// they compute bit by bit; it prints a row of the report for each thousand, after an interrupt for the kernels that it came
// to. The fourth writes such kernels with the hashes of the machine's answers to internal/gpusim/testdata, for the tests.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
)

func main() {
	c := &config{}
	flag.StringVar(&c.clang, "clang", "clang-19", "clang with the NVPTX back end")
	flag.Uint64Var(&c.seed, "seed", 1, "seed of the generator, and of what -sample draws")
	flag.IntVar(&c.n, "n", 100, "number of kernels")
	flag.IntVar(&c.sets, "sets", 1, "number of sets of inputs")
	flag.BoolVar(&c.all, "all", false, "random: compile each kernel at -O0, -O1 and -O3, instead of -O0 and one of the others")
	flag.IntVar(&c.jobs, "j", runtime.NumCPU(), "kernels or files of kernels at a time")
	flag.IntVar(&c.sample, "sample", 0, "engine: draw so many of a kernel's mutants of synchronisation, and of its others; 0 for all")
	flag.StringVar(&c.state, "state", "", "engine: file that keeps what is done, for another run to go on")
	flag.Parse()
	if err := c.run(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// config is what the command line says.
type config struct {
	clang   string
	seed    uint64
	n, sets int
	all     bool
	jobs    int
	sample  int
	state   string
}

// each calls f with 0 to n-1 on c.jobs goroutines. After an error no further call begins.
func (c *config) each(n int, f func(i int) error) error {
	var (
		mu   sync.Mutex
		next int
		errs error
		wg   sync.WaitGroup
	)
	take := func(err error) int {
		mu.Lock()
		defer mu.Unlock()
		errs = errors.Join(errs, err)
		if next == n || errs != nil {
			return -1
		}
		next++
		return next - 1
	}
	for range c.jobs {
		wg.Go(func() {
			for i := take(nil); i >= 0; {
				i = take(f(i))
			}
		})
	}
	wg.Wait()
	return errs
}

func (c *config) run(command string) error {
	var out []byte
	var err error
	switch command {
	case "mutation":
		out, err = mutation()
	case "engine":
		out, err = c.engine()
	case "random":
		err = c.random()
	case "golden":
		err = c.golden()
	default:
		return fmt.Errorf("unknown command %q, expected mutation, engine, random or golden", command)
	}
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(out)
	return err
}
