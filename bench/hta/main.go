// Command hta measures how fast traces are read and judged, and how much memory that takes, beside HolisticTraceAnalysis
// where -python names a Python that has it: both in turns, each file alone, the best of -rounds.
//
//	go run ./bench/tracegen -bytes 1e9 -out big.json
//	go run ./bench/hta -python PATH big.json
//
// figures.py writes what the tests compare with (internal/kineto/testdata/hta.json).
package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/kineto"
)

// measured is one turn over some files, in one process.
type measured struct {
	Seconds float64 `json:"seconds"`
	Bytes   int64   `json:"bytes"` // decompressed
	Peak    int64   `json:"peak"`  // resident, bytes; 0 where the system does not tell
}

func main() {
	python := flag.String("python", "", "a Python with HolisticTraceAnalysis 0.5.0; without it ours alone is measured")
	rounds := flag.Int("rounds", 3, "turns, of which the best counts")
	child := flag.Bool("child", false, "measure in this process, and write JSON")
	flag.Parse()
	var err error
	if *child {
		err = measure(flag.Args())
	} else {
		err = compare(*python, *rounds, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hta:", err)
		os.Exit(2)
	}
}

func measure(files []string) error {
	var m measured
	start := time.Now()
	var reports []any
	for _, name := range files {
		n, detail, err := diagnose(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.Bytes += n
		reports = append(reports, detail) // ranks are compared once all are read
	}
	m.Seconds = time.Since(start).Seconds()
	m.Peak = peak()
	if len(reports) != len(files) {
		return fmt.Errorf("%d reports of %d files", len(reports), len(files))
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

func diagnose(name string) (int64, any, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(bufio.NewReaderSize(f, 1<<16)); err != nil {
			return 0, nil, err
		}
	}
	rep, err := kineto.Diagnose(context.Background(), name, r)
	if err != nil {
		return 0, nil, err
	}
	return rep.Detail.(*kineto.Trace).Bytes, rep, nil
}

// peak is the most that was resident, by Linux.
func peak() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	var kb int64
	if _, rest, ok := strings.Cut(string(b), "VmHWM:"); ok {
		fmt.Sscan(rest, &kb)
	}
	return kb << 10
}

func compare(python string, rounds int, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("name the traces")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	best, theirs := measured{}, 0.0
	for range rounds {
		out, err := exec.Command(self, append([]string{"-child"}, files...)...).Output()
		if err != nil {
			return err
		}
		var m measured
		if err := json.Unmarshal(out, &m); err != nil {
			return err
		}
		if best.Seconds == 0 || m.Seconds < best.Seconds {
			m.Peak = max(m.Peak, best.Peak)
			best = m
		}
		best.Peak = max(best.Peak, m.Peak)
		if python != "" {
			start := time.Now()
			c := exec.Command(python, append([]string{"bench/hta/figures.py", "-once"}, files...)...)
			c.Stderr = os.Stderr
			out, err := c.Output()
			if err != nil {
				return err
			}
			var seconds float64
			if _, err := fmt.Sscan(string(out), &seconds); err != nil {
				return err
			}
			if theirs == 0 || seconds < theirs {
				theirs = seconds
			}
			fmt.Printf("HolisticTraceAnalysis: %.2f s (%.2f s with Python's start)\n", seconds, time.Since(start).Seconds())
		}
	}
	fmt.Printf("%d files, %d bytes: %.3f s, %.0f MB/s, %.0f MB resident at most\n", len(files), best.Bytes, best.Seconds,
		float64(best.Bytes)/best.Seconds/1e6, float64(best.Peak)/1e6)
	if theirs > 0 {
		fmt.Printf("HolisticTraceAnalysis, without Python's start: %.2f s, %.1f times as long\n", theirs, theirs/best.Seconds)
	}
	return nil
}
