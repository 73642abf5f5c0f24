package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/render"
)

// Copy is the bench of copies between the host and a device; it has sizes in bytes instead of cases.
const Copy = "copy"

// CopyConfig says which copies to time. The zero value is a good choice, of the CPU.
type CopyConfig struct {
	Device   string
	Sizes    []int64 // bytes; 1 KiB to 1 GiB, four times as much each if empty
	Rounds   int     // copies of each kind, 0: 15; of a simulated card one, since all take as long
	Progress func(done, of int, what string)
}

// The ways of a copy, and the memory on the host's side.
const (
	ToDevice = "to-device"
	ToHost   = "to-host"
	OnHost   = "on-host" // of the CPU, which has no link

	Pinned   = "pinned"
	Pageable = "pageable"
)

// kindOfCopy is a curve of the plot.
type kindOfCopy struct{ direction, memory string }

var (
	overLink = []kindOfCopy{{ToDevice, Pinned}, {ToDevice, Pageable}, {ToHost, Pinned}, {ToHost, Pageable}}
	onHost   = []kindOfCopy{{OnHost, Pageable}}
)

// mostCopied bounds a copy, in bytes.
const mostCopied = 1 << 36

// CopySizes are those that are timed if none are named.
func CopySizes() (sizes []int64) {
	for n := int64(1 << 10); n <= 1<<30; n *= 4 {
		sizes = append(sizes, n)
	}
	return sizes
}

// RunCopy times copies and tells each row: the median and the quartiles of their bandwidth. Between two it asks ctx.
func RunCopy(ctx context.Context, c CopyConfig, tell func(Row) error) error {
	if c.Device == "" {
		c.Device = "cpu"
	}
	if len(c.Sizes) == 0 {
		c.Sizes = CopySizes()
	}
	for _, n := range c.Sizes {
		if n < 1 || n > mostCopied {
			return advice.Failf("give sizes from 1 B to 64 GiB, as in 4KiB,1MiB,1GB", "a copy of %d bytes", n)
		}
	}
	b, err := newCopier(c)
	if err != nil {
		return err
	}
	done := 0
	for _, n := range c.Sizes {
		for _, k := range b.kinds {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if c.Progress != nil {
				c.Progress(done, len(c.Sizes)*len(b.kinds), fmt.Sprintf("%s %s %s", sizeText(n), k.direction, k.memory))
			}
			done++
			row, err := b.row(n, k)
			if err != nil {
				return err
			}
			if err := tell(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// copier times copies of a device.
type copier struct {
	name     string
	kinds    []kindOfCopy
	link     device.Linked // nil: the CPU
	modelled bool
	rounds   int
	ceiling  float64 // GB/s of pinned memory by the table of cards; 0: not known
}

func newCopier(c CopyConfig) (*copier, error) {
	if err := machine.CheckEnvironment(); err != nil {
		return nil, err
	}
	name, err := device.ParseName(c.Device)
	if err != nil {
		return nil, machine.Explain(c.Device, err)
	}
	b := &copier{name: name.String(), kinds: overLink, rounds: cmp.Or(max(c.Rounds, 0), 15)}
	if name.Kind == "cpu" {
		b.kinds = onHost
		return b, nil
	}
	dev, err := name.Open()
	if err != nil {
		return nil, machine.Explain(c.Device, err)
	}
	link, ok := device.As[device.Linked](dev)
	if !ok {
		return nil, advice.Failf("take cuda:N, cpu, or sim:CARD, whose times are those of a model", "%s has no link that could be timed", b.name)
	}
	b.link = link
	card, known := cards.Match(dev.Info().Compute, dev.Info().SMs, dev.Info().Memory)
	if name.Kind == "sim" {
		b.modelled, b.rounds = true, 1
		card, known = cards.Find(cmp.Or(name.Card, cards.Default))
	}
	if known {
		b.ceiling = float64(card.Link)
	}
	return b, nil
}

// row times one kind of copy.
func (b *copier) row(n int64, k kindOfCopy) (Row, error) {
	took, err := b.times(n, k)
	if err != nil {
		if errors.Is(err, device.ErrOutOfMemory) {
			return Row{}, &advice.Error{Text: fmt.Sprintf("%s has no room for a copy of %s", b.name, render.Bytes(n)), Hint: "give smaller --sizes", Err: err}
		}
		return Row{}, err
	}
	var rates []float64
	for _, t := range took {
		rates = append(rates, float64(n)/max(t.Seconds(), 1e-9)/1e9)
	}
	slices.Sort(rates)
	row := Row{Bench: Copy, Case: k.direction + "-" + k.memory, N: int(n), DType: "u8", Device: b.name, Threads: 1, Modelled: b.modelled, Unit: "GB/s",
		Median: quantile(rates, 0.5), Low: quantile(rates, 0.25), High: quantile(rates, 0.75), Direction: k.direction, Memory: k.memory, Bytes: n}
	row.GBPS = row.Median
	row.MS = float64(n) / row.Median / 1e6
	if b.ceiling > 0 && k.memory == Pinned {
		share := row.Median / b.ceiling
		row.Ceiling, row.Share = &b.ceiling, &share
	}
	return row, nil
}

// quantile is between the values of a sorted list that are nearest.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func (b *copier) times(n int64, k kindOfCopy) ([]time.Duration, error) {
	if b.link != nil {
		return b.link.Transfer(n, k.direction == ToDevice, k.memory == Pinned, b.rounds)
	}
	return copied(n, b.rounds)
}

// copied times the copies of a thread from one piece of memory to another.
func copied(n int64, times int) (took []time.Duration, err error) {
	from, err := hostmem.Alloc(int(n))
	if err != nil {
		return nil, err
	}
	to, err := hostmem.Alloc(int(n))
	if err != nil {
		return nil, errors.Join(err, from.Free())
	}
	src, dst := hostmem.Bytes(from.Addr, int(n)), hostmem.Bytes(to.Addr, int(n))
	clear(src)
	copy(dst, src)
	again := int(max(1, 1<<20/n)) // what takes less than the clock tells is done more often
	for range times {
		start := time.Now()
		for range again {
			copy(dst, src)
		}
		took = append(took, time.Since(start)/time.Duration(again))
	}
	return took, errors.Join(from.Free(), to.Free())
}

// ParseSize reads "4096", "64KiB", "1MB": KB, MB and GB are powers of ten, KiB and K of two.
func ParseSize(text string) (int64, error) {
	n, err := render.ParseBytes(text)
	if err != nil || n > mostCopied || n < 1 {
		return 0, advice.Failf("give sizes such as 1KB (1,000 bytes), 64KiB, 1MiB or 1GB, 64 GiB at most", "%q is not a size", text)
	}
	return n, nil
}

// sizeText is a size as ParseSize would be given it: in powers of ten where it has been, else in those of two.
func sizeText(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}} {
		if n%u.bytes == 0 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.name)
		}
	}
	return render.Bytes(n)
}

// CopyText is a table of rows, a line for each size: GB/s, with the quartiles where they differ.
func CopyText(rows []Row, width int) string {
	kinds := kindsOf(rows)
	t := render.Table{Header: []string{"size"}, Right: []bool{true}}
	for _, k := range kinds {
		t.Header, t.Right = append(t.Header, k.name()), append(t.Right, true)
	}
	for at := 0; at < len(rows); at += len(kinds) {
		size := rows[at:min(at+len(kinds), len(rows))]
		line := []string{sizeText(size[0].Bytes)}
		for i := range size {
			line = append(line, size[i].spread())
		}
		t.Rows = append(t.Rows, append(line, make([]string, len(kinds)-len(size))...)) // an interrupt leaves some out
	}
	return t.String(width)
}

// spread is the median, and the quartiles where they differ.
func (r *Row) spread() string {
	if r.Low == r.High {
		return figure(r.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", figure(r.Median), figure(r.Low), figure(r.High))
}

func (k kindOfCopy) name() string {
	if k.direction == OnHost {
		return "memcpy"
	}
	return strings.ReplaceAll(k.direction, "-", " ") + ", " + k.memory
}

// kindsOf lists the kinds of rows as they come.
func kindsOf(rows []Row) (list []kindOfCopy) {
	for _, r := range rows {
		if k := (kindOfCopy{r.Direction, r.Memory}); !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list
}

// CopyPlot draws the bandwidth of each kind by size.
func CopyPlot(rows []Row) render.Plot {
	p := render.Plot{Title: "copies", XLabel: "bytes", YLabel: "GB/s", LogX: true, LogY: true}
	if len(rows) > 0 {
		p.Title = "copies, " + rows[0].Device
		if rows[0].Modelled {
			p.Title += ", modelled"
		}
	}
	for _, k := range kindsOf(rows) {
		s := render.Series{Name: k.name()}
		for _, r := range rows {
			if r.Direction == k.direction && r.Memory == k.memory {
				s.X, s.Y = append(s.X, float64(r.Bytes)), append(s.Y, r.Median)
			}
		}
		if i := slices.IndexFunc(p.Series, func(o render.Series) bool { return slices.Equal(o.Y, s.Y) }); i >= 0 {
			p.Series[i].Name += " = " + s.Name // one curve would hide the other
			continue
		}
		p.Series = append(p.Series, s)
	}
	return p
}
