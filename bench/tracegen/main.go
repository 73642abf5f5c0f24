// Command tracegen writes large traces, of any size and number of ranks, out of a small one: it is repeated, with its times,
// ids and steps shifted and names of kernels varied, so that nothing about the copies is the same but their shape.
//
//	go run ./bench/tracegen -bytes 1e9 -from TRACE.json.gz -out big.json
//	go run ./bench/tracegen -healthy gpt -steps 10 -out gpt.json
package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/kineto/tracetest"
)

func main() {
	from := flag.String("from", "", "trace that is repeated, .json or .gz; without it a ResNet of tracetest's")
	healthy := flag.String("healthy", "", "resnet or gpt: write one that runs well, and repeat nothing")
	size := flag.Float64("bytes", 1e9, "of each file, at least")
	steps := flag.Int("steps", 10, "of a trace that runs well")
	ranks := flag.Int("ranks", 1, "files, with .N before their extension where there are several")
	out := flag.String("out", "trace.json", "file; .gz compresses it")
	flag.Parse()
	if err := run(*from, *healthy, int64(*size), *steps, *ranks, *out); err != nil {
		fmt.Fprintln(os.Stderr, "tracegen:", err)
		os.Exit(2)
	}
}

func run(from, healthy string, size int64, steps, ranks int, out string) error {
	seed, err := source(from, healthy, steps)
	if err != nil {
		return err
	}
	for rank := range ranks {
		name := out
		if ranks > 1 {
			base, ext, _ := strings.Cut(out, ".")
			name = fmt.Sprintf("%s.%d.%s", base, rank, ext)
		}
		if healthy != "" {
			size = 0
		}
		if err := write(name, seed, size, rank, ranks); err != nil {
			return err
		}
	}
	return nil
}

// source is the trace that is repeated.
func source(from, healthy string, steps int) ([]byte, error) {
	switch {
	case healthy == "gpt":
		return tracetest.GPT(tracetest.Options{Steps: steps}), nil
	case healthy == "resnet" || from == "" && healthy == "":
		return tracetest.ResNet(tracetest.Options{Steps: steps}), nil
	case healthy != "":
		return nil, fmt.Errorf("-healthy is resnet or gpt, not %q", healthy)
	}
	f, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !strings.HasSuffix(from, ".gz") {
		return io.ReadAll(f)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func write(name string, seed []byte, size int64, rank, ranks int) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var to io.Writer = f
	if strings.HasSuffix(name, ".gz") {
		z := gzip.NewWriter(f)
		defer func() { err = errors.Join(err, z.Close()) }()
		to = z
	}
	w := bufio.NewWriterSize(to, 1<<20)
	defer func() { err = errors.Join(err, w.Flush()) }()
	return repeat(w, seed, size, rank, ranks)
}

// What changes from copy to copy: a time, an id, a step's number, and the beginning of a kernel's name.
var changing = regexp.MustCompile(`"ts": ?(\d+)|"(?:correlation|[Ee]xternal id|id)": ?(\d+)|ProfilerStep#(\d+)|"[Kk]ernel", ?\s*"name": "()`)

type part struct {
	text string // before the number
	kind int    // 1 time, 2 id, 3 step, 4 name, 0 the end
	n    int64
}

// template is the events' text, taken apart where it changes, and how far a copy is shifted.
func template(events string) (parts []part, shift [4]int64) {
	var low, high [4]int64
	at := 0
	for _, m := range changing.FindAllStringSubmatchIndex(events, -1) {
		for kind := 1; kind <= 4; kind++ {
			from, to := m[2*kind], m[2*kind+1]
			if from < 0 {
				continue
			}
			n, _ := strconv.ParseInt(events[from:to], 10, 64)
			parts = append(parts, part{events[at:from], kind, n})
			at = to
			if kind == 4 || n == 0 {
				continue
			}
			if low[kind] == 0 || n < low[kind] {
				low[kind] = n
			}
			high[kind] = max(high[kind], n)
		}
	}
	for kind := range shift {
		shift[kind] = high[kind] - low[kind] + 1
	}
	return append(parts, part{text: events[at:]}), shift
}

// variants are how many names a kernel has among the copies.
const variants = 23

func repeat(w *bufio.Writer, seed []byte, size int64, rank, ranks int) error {
	text := string(seed)
	begin := strings.Index(text, `"traceEvents"`)
	end := strings.LastIndex(text, "]")
	if begin < 0 || end < begin {
		return errors.New("the trace has no traceEvents")
	}
	open := begin + strings.IndexByte(text[begin:], '[') + 1
	if last := strings.LastIndexByte(text[open:end], '}'); last >= 0 {
		end = open + last + 1 // what is behind the events, or in their midst, stays away
	}
	parts, shift := template(text[open:end])
	head := text[:begin]
	if ranks > 1 {
		head = strings.Replace(head, "{", fmt.Sprintf(`{"distributedInfo": {"backend": "nccl", "rank": %d, "world_size": %d},`, rank, ranks), 1)
	}
	w.WriteString(head + `"traceEvents": [`)
	written := int64(len(head))
	for copies := int64(0); copies == 0 || written < size; copies++ {
		if copies > 0 {
			w.WriteString(",\n")
		}
		written += one(w, parts, shift, copies, int64(rank))
	}
	_, err := w.WriteString("]}\n")
	return err
}

// one writes one copy and gives its bytes.
func one(w *bufio.Writer, parts []part, shift [4]int64, copies, rank int64) (n int64) {
	var b []byte
	for i := range parts {
		p := &parts[i]
		b = append(b[:0], p.text...)
		switch {
		case p.kind == 4 && copies > 0:
			b = append(b, "v"+strconv.FormatInt(copies%variants, 10)+"_"...)
		case p.kind > 0 && p.kind < 4 && p.n == 0:
			b = append(b, '0')
		case p.kind > 0 && p.kind < 4:
			b = strconv.AppendInt(b, p.n+copies*shift[p.kind]+rank*7*int64(2-min(p.kind, 2)), 10)
		}
		w.Write(b)
		n += int64(len(b))
	}
	return n
}
