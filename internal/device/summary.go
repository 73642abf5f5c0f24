package device

import (
	"fmt"
	"strings"
)

// Summary returns the counters as a table in PyTorch's layout, 75 characters wide between its borders.
func (a *Allocator) Summary() string {
	s := a.Stats()
	return s.summary(a.name)
}

func (s *Stats) summary(device string) string {
	const width = 75
	var b strings.Builder
	line := func(text string) { fmt.Fprintf(&b, "|%-*s|\n", width, text) }
	thin, thick := strings.Repeat("-", width), strings.Repeat("=", width)
	line(thick)
	line(fmt.Sprintf("%18sWarpline memory summary, device %s", "", device))
	line(thin)
	line(fmt.Sprintf("%17sOOMs: %-12d | %12salloc retries: %-8d", "", s.NumOOMs, "", s.NumAllocRetries))
	line(thick)
	line("        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ")
	for _, m := range s.metrics() {
		line(thin)
		line(summaryRow(m.name, &m.All, &m.All, m.cell))
		line(summaryRow("      from large pool", &m.Large, &m.All, m.cell))
		line(summaryRow("      from small pool", &m.Small, &m.All, m.cell))
	}
	line(thin)
	line(summaryRow("Oversize allocations", &s.OversizeAllocations, &s.OversizeAllocations, countCell))
	line(thin)
	line(summaryRow("Oversize segments", &s.OversizeSegments, &s.OversizeSegments, countCell))
	line(thick)
	return b.String()
}

// metric is a counter with its row name and the form of its cells.
type metric struct {
	name string
	*Counter
	cell func(n, scale int64) string
}

func (s *Stats) metrics() [9]metric {
	return [...]metric{
		{"Allocated memory", &s.AllocatedBytes, sizeCell},
		{"Active memory", &s.ActiveBytes, sizeCell},
		{"Requested memory", &s.RequestedBytes, sizeCell},
		{"Reserved memory", &s.ReservedBytes, sizeCell},
		{"Non-releasable memory", &s.InactiveSplitBytes, sizeCell},
		{"Allocations", &s.Allocation, countCell},
		{"Active allocs", &s.Active, countCell},
		{"Reserved segments", &s.Segment, countCell},
		{"Non-releasable allocs", &s.InactiveSplit, countCell},
	}
}

// summaryRow prints a counter in the units of another, so that the rows of a metric compare.
func summaryRow(name string, c, scale *Stat, cell func(n, scale int64) string) string {
	return fmt.Sprintf(" %-21s | %s | %s | %s | %s ", name, cell(c.Current, scale.Current), cell(c.Peak, scale.Peak),
		cell(c.Allocated, scale.Allocated), cell(c.Freed, scale.Freed))
}

func sizeCell(n, scale int64) string {
	units := [...]string{"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for ; i < len(units)-1 && scale >= 768<<10; i++ {
		n, scale = n>>10, scale>>10
	}
	return fmt.Sprintf("%6d %s", n, units[i])
}

func countCell(n, scale int64) string {
	units := [...]string{" ", "K", "M"}
	i := 0
	for ; i < len(units)-1 && scale >= 750e3; i++ {
		n, scale = n/1000, scale/1000
	}
	return fmt.Sprintf("%7d %s ", n, units[i])
}
