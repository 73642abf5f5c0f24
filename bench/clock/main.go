// Command clock compares the model of a card's time (internal/estimate) with published figures of kernels whose PTX the simulator
// runs, and writes a table of all of them:
//
//	go run ./bench/clock > bench/clock/report.md
//
// The kernels are in testdata: kernels.cu and again.cu compiled by examples/sim/build.sh, and what bench/triton/compile.py makes. Their registers
// are those that ptxas tells:
//
//	go run ./bench/clock -registers PTXAS > bench/clock/testdata/registers.txt
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/simrun"
)

var (
	dir   = flag.String("testdata", "bench/clock/testdata", "where the kernels are")
	ptxas = flag.String("registers", "", "write what this ptxas says of the kernels' registers, and nothing else")
	pick  = flag.String("rows", "", "only rows that contain this")
	terms = flag.Bool("terms", false, "show the terms of each")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	if *ptxas != "" {
		if err := writeRegisters(os.Stdout, *ptxas, *dir); err != nil {
			log.Fatal(err)
		}
		return
	}
	known, err := readRegisters(*dir)
	if err != nil {
		log.Fatal(err)
	}
	var list []result
	for _, r := range rows() {
		if !strings.Contains(r.what, *pick) {
			continue
		}
		x, err := r.model(*dir, known)
		if err != nil {
			log.Fatalf("%s: %v", r.what, err)
		}
		list = append(list, x)
		log.Printf("%-45s %-10s %9.2f %9.2f %+4.0f %% %s %s", r.what, r.card, r.figure, x.figure(), 100*x.off(), x.limiter, x.file)
		if *terms {
			for _, t := range x.terms {
				log.Printf("      %-10s %8.2f µs  %s", t.Name, 1e6*t.Seconds, t.Why)
			}
		}
	}
	fmt.Print(report(list))
}

// result is a row with what the model says.
type result struct {
	row
	seconds float64
	limiter string
	file    string // of the try that was quickest
	terms   []simrun.Term
}

// model runs the tries of a row and takes the quickest.
func (r *row) model(dir string, known map[string]int) (best result, err error) {
	best.row = *r
	if r.gap != nil {
		best.seconds, best.limiter, err = r.gap.seconds(dir, r.card)
		return best, err
	}
	for i := range r.tries {
		t := &r.tries[i]
		run, err := simrun.Run(context.Background(), t.config(dir, r.card, known[t.key(r.card)]))
		switch {
		case err != nil:
			return best, fmt.Errorf("%s: %w", t.file, err)
		case len(run.Findings) > 0:
			return best, fmt.Errorf("%s: %s", t.file, run.Findings[0].Text())
		case run.Model == nil:
			continue // no block of it fits
		case best.seconds == 0 || run.Model.Seconds < best.seconds:
			best.seconds, best.limiter, best.file, best.terms = run.Model.Seconds, run.Model.Limiter, t.file, run.Model.Terms
		}
	}
	if best.seconds == 0 {
		return best, errors.New("no kernel of it fits the card")
	}
	if r.events {
		best.seconds += estimate.PerEvents
	}
	return best, nil
}

// figure is that of the model in the unit of the published one.
func (r *result) figure() float64 {
	if r.gap != nil {
		return 1e6 * r.seconds
	}
	return r.work / r.seconds / r.scale()
}

// off is how much longer the modelled time is than the published one, as a share of that.
func (r *result) off() float64 {
	if r.gap != nil {
		return r.figure()/r.row.figure - 1
	}
	return r.row.figure/r.figure() - 1
}

// scale is the unit of the figure.
func (r *row) scale() float64 {
	if r.unit == "TFLOP/s" {
		return 1e12
	}
	return 1e9
}

// key is that of a kernel's registers on a card.
func (t *try) key(card string) string {
	c, _ := cards.Find(card)
	return fmt.Sprintf("%s %s sm_%d%d", t.file, t.kernel, c.Compute[0], c.Compute[1])
}

const registersFile = "registers.txt"

// readRegisters reads what writeRegisters wrote.
func readRegisters(dir string) (map[string]int, error) {
	f, err := os.Open(filepath.Join(dir, registersFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	known := map[string]int{}
	for s := bufio.NewScanner(f); s.Scan(); {
		var n int
		at := strings.LastIndexByte(s.Text(), ' ')
		if _, err := fmt.Sscan(s.Text()[at+1:], &n); err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", f.Name(), s.Text(), err)
		}
		known[s.Text()[:at]] = n
	}
	return known, nil
}

var used = regexp.MustCompile(`(?s)Compiling entry function '([^']+)'.*?Used (\d+) registers`)

// writeRegisters asks ptxas for those of all kernels, for the targets of the rows' cards.
func writeRegisters(w io.Writer, ptxas, dir string) error {
	done := map[string]bool{}
	for _, r := range rows() {
		for _, t := range r.tries {
			key := t.key(r.card)
			if done[key] {
				continue
			}
			done[key] = true
			out, err := exec.Command(ptxas, "-v", "--gpu-name", key[strings.LastIndexByte(key, ' ')+1:], "-o", os.DevNull, t.path(dir)+".ptx").CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s: %w: %s", key, err, out)
			}
			for _, m := range used.FindAllStringSubmatch(string(out), -1) {
				if t.kernel == "" || t.kernel == m[1] {
					fmt.Fprintf(w, "%s %s\n", key, m[2])
				}
			}
		}
	}
	return nil
}
