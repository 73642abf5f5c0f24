package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/monitor"
	"github.com/warpline-ml/warpline/internal/web"
	"github.com/warpline-ml/warpline/train"
)

const topLong = `Watch the devices of this machine and what runs on them: memory, utilisation, power, clocks and why they are low, links,
memory errors, instances of divided cards, processes, and of this program's own runs what they allocated of the memory
that they reserved, on simulated devices too.

Cards are asked by NVIDIA's management library. What a card does not tell is said, and never shown as zero. Utilisation is
the share of time in which any kernel ran, not work done, and no snapshot is a timeline: train --profile shows where the
time of a step goes.

On a terminal it goes on until q; elsewhere, and with --once, it shows one snapshot.`

const topExample = `  warpline top
  warpline top --once
  warpline top --json --interval 5s >> gpus.jsonl
  warpline top --listen :9400`

// topFlags are what top is told.
type topFlags struct {
	once     bool
	interval time.Duration
	listen   string
	sort     string
}

// briefest is the shortest interval: a reading of cards takes 40 ms.
const briefest = 100 * time.Millisecond

func newTop() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{Use: "top", Short: "Watch devices and what runs on them", Long: topLong, Example: topExample, Args: from(0, 0)}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&f.once, "once", false, "show one snapshot and end")
	cmd.Flags().DurationVar(&f.interval, "interval", 2*time.Second, "from one snapshot to the next")
	cmd.Flags().StringVar(&f.sort, "sort", monitor.Sorts[0], "processes by "+advice.List(monitor.Sorts))
	cmd.Flags().StringVar(&f.listen, "listen", "", "serve metrics for Prometheus on an address, such as :9400; of this machine alone unless a host is given")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runTop(cmd, &f) }
	return cmd
}

func runTop(cmd *cobra.Command, f *topFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	s, sampler := newScreen(cmd), monitor.New()
	switch {
	case f.listen != "":
		return serveTop(cmd.Context(), s, sampler, f)
	case s.json != nil:
		return f.emitTop(cmd.Context(), s, sampler)
	case f.once || !s.terminal:
		return s.showOnce(sampler.Sample(), f)
	}
	return watchTop(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), sampler, f, s.color)
}

func (f *topFlags) check() error {
	if f.interval < briefest {
		return advice.Failf(fmt.Sprintf("give %v or more: asking cards takes time of its own", briefest), "--interval is %v", f.interval)
	}
	for _, name := range monitor.Sorts {
		if f.sort == name {
			return nil
		}
	}
	return advice.Failf(advice.Meant(f.sort, monitor.Sorts)+"choose one of "+strings.Join(monitor.Sorts, ", "), "--sort is %q", f.sort)
}

// showOnce writes a snapshot as tables.
func (s *screen) showOnce(snap *monitor.Snapshot, f *topFlags) error {
	width := s.width
	if !s.terminal {
		width = widestTop
	}
	_, err := io.WriteString(s.text, monitor.View{Width: width, Sort: f.sort, Lacks: true}.Text(snap))
	return s.unwritten(err)
}

// widestTop is room for all columns, where nobody says how much there is.
const widestTop = 140

// emitTop writes snapshots as JSON lines.
func (f *topFlags) emitTop(ctx context.Context, s *screen, sampler *monitor.Sampler) error {
	for {
		if err := s.emit(sampler.Sample()); err != nil || f.once {
			return err
		}
		select {
		case <-ctx.Done():
			return train.ErrInterrupted
		case <-time.After(f.interval):
		}
	}
}

// serveTop serves metrics until it is interrupted. A snapshot serves all who ask within the interval.
func serveTop(ctx context.Context, s *screen, sampler *monitor.Sampler, f *topFlags) error {
	server, err := web.Listen(f.listen)
	if err != nil {
		return err
	}
	defer server.Close()
	server.Serve(metrics(sampler, f.interval))
	if err := s.emit(map[string]string{"url": server.URL + "metrics"}); err != nil {
		return err
	}
	s.say("%smetrics has metrics for Prometheus; Ctrl-C ends it", server.URL)
	if !server.Local() {
		s.Note("every machine that reaches this one can read them: users' names and process numbers are among them")
	}
	<-ctx.Done()
	return train.ErrInterrupted
}

// metrics answers scrapes.
func metrics(sampler *monitor.Sampler, fresh time.Duration) http.Handler {
	var mu sync.Mutex
	var last *monitor.Snapshot
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if last == nil || time.Since(last.Time) >= fresh {
			last = sampler.Sample()
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = last.WritePrometheus(w) // a scraper that has gone
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/metrics", http.StatusFound) })
	return mux
}
