package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/warpline-ml/warpline/internal/testutil"
)

func golden(t *testing.T, name, got string) {
	t.Helper()
	testutil.Golden(t, "testdata/"+name, []byte(got))
}

func TestQuantities(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Bytes(0), "0 B"}, {Bytes(1023), "1023 B"}, {Bytes(1024), "1.00 KiB"}, {Bytes(1536), "1.50 KiB"}, {Bytes(1<<20 - 1), "1.00 MiB"},
		{Bytes(123 << 20), "123 MiB"}, {Bytes(math.MaxInt64), "8.00 EiB"}, {Bytes(-2048), "-2.00 KiB"},
		{Count(0), "0"}, {Count(999), "999"}, {Count(1234), "1.23k"}, {Count(99_950), "100k"}, {Count(999_700), "1.00M"}, {Count(124_439_808), "124M"},
		{Count(math.MinInt64), "-9.22E"},
		{Duration(0), "0 ns"}, {Duration(850), "850 ns"}, {Duration(12_300 * time.Nanosecond), "12.3 µs"}, {Duration(999_900 * time.Nanosecond), "1.00 ms"},
		{Duration(4560 * time.Millisecond), "4.56 s"}, {Duration(999_800 * time.Microsecond), "1.00 s"}, {Duration(59_700 * time.Millisecond), "1m00s"},
		{Duration(185 * time.Second), "3m05s"}, {Duration(127 * time.Minute), "2h07m"}, {Duration(99 * time.Hour), "4d03h"}, {Duration(-time.Second), "-1.00 s"},
		{Duration(math.MinInt64), "-106751d23h"},
		{Percent(0.9725), "97.25 %"}, {Percent(math.NaN()), "–"}, {Percent(1), "100.00 %"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "äöü": 3, "e\u0301": 1, "日本": 4, "한글": 4, "🙂": 2, "▀█": 2, "\x1b[31mred\x1b[0m": 3, "ａ": 2, "a\u200bb": 2,
	} {
		if got := Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	for _, c := range []struct {
		s     string
		width int
		want  string
	}{
		{"abcdef", 6, "abcdef"}, {"abcdef", 4, "abc…"}, {"abcdef", 1, "…"}, {"abcdef", 0, ""}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"", 0, ""}, {"x", -1, ""},
	} {
		if got := Truncate(c.s, c.width); got != c.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", c.s, c.width, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		s             string
		width, indent int
		want          string
	}{
		{"", 5, 2, ""}, {"one two", 7, 2, "one two"}, {"one two", 6, 2, "one\n  two"}, {"  held  out", 8, 0, "  held\nout"}, {"a\n\nb c", 1, 0, "a\n\nb\nc"},
		{"extraordinary word", 5, 1, "extraordinary\n word"}, {"日本 語", 4, 0, "日本\n語"},
	} {
		if got := Wrap(c.s, c.width, c.indent); got != c.want {
			t.Errorf("Wrap(%q, %d, %d) = %q, want %q", c.s, c.width, c.indent, got, c.want)
		}
	}
}

func TestWholeTicks(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 9, 40, 1500} {
		p := Plot{WholeX: true, Series: []Series{{}}}
		for i := range n {
			p.Series[0].X, p.Series[0].Y = append(p.Series[0].X, float64(i+1)), append(p.Series[0].Y, 1)
		}
		x, _, ok := p.axes(8, 5)
		if !ok || len(x.ticks) == 0 {
			t.Fatalf("%d steps: no ticks", n)
		}
		for _, tick := range x.ticks {
			if _, err := strconv.Atoi(tick.label); err != nil {
				t.Errorf("%d steps: a tick at %s", n, tick.label)
			}
		}
	}
}

// TestDots: a point alone is seen, and a long curve has no dots.
func TestDots(t *testing.T) {
	long := Series{Y: make([]float64, 100)}
	svg := Plot{Series: []Series{long, {X: []float64{50}, Y: []float64{1}}}}.SVG(400, 300)
	if n := strings.Count(svg, "<circle"); n != 1 {
		t.Errorf("%d dots, want that of the point alone", n)
	}
	wellFormed(t, svg)
}

func TestRate(t *testing.T) {
	for f, want := range map[float64]string{0: "0", -1: "0", math.NaN(): "0", 0.0312: "0.031", 0.5: "0.5", 0.999: "1.00", 5.3: "5.30", 99.96: "99", 1234: "1.23k", 1e300: "∞"} {
		if got := Rate(f); got != want {
			t.Errorf("%v is %s, want %s", f, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	table := Table{
		Header: []string{"layer", "shape", "parameters"},
		Right:  []bool{false, false, true},
		Rows: [][]string{
			{"conv1", "[32 1 3 3]", "320"},
			{"blocks.0.attention.projection.weight", "[768 768]", "590k"},
			{"日本語", "", "1"},
			{"short row"},
		},
	}
	golden(t, "table.txt", table.String(100)+"\n"+table.String(40)+"\n"+table.String(5)+"\n"+Table{Rows: table.Rows}.String(100))
	if got := (Table{}).String(10); got != "" {
		t.Errorf("an empty table is %q", got)
	}
}

// TestTableKeepsNumbers: of a column of numbers only the header is cut while there is text to cut.
func TestTableKeepsNumbers(t *testing.T) {
	table := Table{Header: []string{"name", "gradients"}, Right: []bool{false, true}, Rows: [][]string{{"scatter_add_rows", "12.3 ms"}}}
	if got, want := table.String(13), "name  gradie…\n────  ───────\nsca…  12.3 ms\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestTableSpares: columns that can be spared go one by one, and nothing is cut that then fits.
func TestTableSpares(t *testing.T) {
	table := Table{Header: []string{"part", "name", "cases", "failed"}, Right: []bool{false, false, true, true},
		Rows: [][]string{{"op", "conv2d_grad_weight", "44", "1"}, {"op", "add"}}, Spare: []int{2, 0}}
	for width, want := range map[int]string{
		39: "part  name                cases  failed\n────  ──────────────────  ─────  ──────\nop    conv2d_grad_weight     44       1\nop    add\n",
		38: "part  name                failed\n────  ──────────────────  ──────\nop    conv2d_grad_weight       1\nop    add\n",
		26: "name                failed\n──────────────────  ──────\nconv2d_grad_weight       1\nadd\n",
		20: "name          failed\n────────────  ──────\nconv2d_grad…       1\nadd\n",
	} {
		if got := table.String(width); got != want {
			t.Errorf("in %d columns\n%swant\n%s", width, got, want)
		}
	}
}

// TestTableEnds: places in files are told apart by their ends.
func TestTableEnds(t *testing.T) {
	table := Table{Header: []string{"count", "line"}, Right: []bool{true}, Ends: []bool{false, true}, Spare: []int{0},
		Rows: [][]string{{"1", "/home/me/kernels/sum.cu:12"}, {"2", "sum.cu:7"}, {"3", "日本語.cu:3"}}}
	for width, want := range map[int]string{
		15: "line\n───────────────\n…nels/sum.cu:12\nsum.cu:7\n日本語.cu:3\n",
		9:  "line\n─────────\n…um.cu:12\nsum.cu:7\n…語.cu:3\n",
	} {
		if got := table.String(width); got != want {
			t.Errorf("in %d columns\n%swant\n%s", width, got, want)
		}
	}
}

func TestTableFits(t *testing.T) {
	r := testutil.Rand(t)
	for range 200 {
		var table Table
		for range r.IntN(5) {
			var row []string
			for range r.IntN(4) {
				row = append(row, strings.Repeat("字a", r.IntN(20)))
			}
			table.Rows = append(table.Rows, row)
		}
		width := 20 + r.IntN(60)
		fits(t, table.String(width), width)
	}
}

// fits fails if a line is wider than width.
func fits(t *testing.T, s string, width int) {
	t.Helper()
	for line := range strings.Lines(s) {
		if w := Width(strings.TrimSuffix(line, "\n")); w > width {
			t.Fatalf("a line of %d columns in %d:\n%s", w, width, s)
		}
	}
	if !utf8.ValidString(s) {
		t.Fatalf("not UTF-8: %q", s)
	}
}

func TestBars(t *testing.T) {
	bars := []Bar{
		{"weights", 120, "120 MiB"}, {"gradients", 120, "120 MiB"}, {"optimizer", 240, "240 MiB"}, {"activations", 61.7, "61.7 MiB"},
		{"a very long label that needs cutting", 3, "3 MiB"}, {"none", 0, "0 B"}, {"nan", math.NaN(), "–"}, {"inf", math.Inf(1), "∞"}, {"negative", -5, "-5"},
	}
	got := Bars(bars, 60)
	fits(t, got, 60)
	golden(t, "bars.txt", got+"\n"+Bars([]Bar{{"empty", 0, ""}}, 20))
	if Bars(nil, 40) != "" {
		t.Error("no bars must be nothing")
	}
}

func TestProgress(t *testing.T) {
	p := Progress{Label: "step 29/100", Done: 29, Total: 100, Fields: []string{"loss 0.312", "1.2k img/s", "ETA 12 s", "412 MiB"}}
	var b strings.Builder
	for _, width := range []int{120, 80, 64, 50, 30, 20, 10, 1} {
		line := p.Line(width)
		fits(t, line, width)
		b.WriteString(line + "\n")
	}
	b.WriteString(Progress{Label: "reading", Fields: []string{"12 files"}}.Line(40) + "\n")
	b.WriteString(Progress{Done: 300, Total: 100}.Line(40) + "\n")
	b.WriteString(Progress{Done: -3, Total: math.MaxInt64}.Line(40) + "\n")
	b.WriteString(Progress{Label: "almost", Done: 999_999, Total: 1_000_000}.Line(40) + "\n")
	golden(t, "progress.txt", b.String())
}

// digit is a 28×28 ring with grey edges.
func digit(radius float64, caption string) Image {
	m := Image{Width: 28, Height: 28, Caption: caption}
	for y := range 28 {
		for x := range 28 {
			d := math.Abs(math.Hypot(float64(x)-13.5, float64(y)-13.5) - radius)
			m.Pixels = append(m.Pixels, float32(math.Max(0, 1-d/2.5)))
		}
	}
	return m
}

func TestImages(t *testing.T) {
	images := []Image{digit(9, "0 · 99 %"), digit(6, "o"), digit(3, "a caption that is much too long"),
		{Width: 5, Height: 3, Pixels: []float32{1, 0, float32(math.NaN()), 7, -1, 1}, Caption: "odd"}, {Caption: "none"}}
	got := Gallery(images, 80, false)
	fits(t, got, 80)
	golden(t, "gallery.txt", got)
	colored := Gallery(images, 80, true)
	fits(t, colored, 80)
	golden(t, "gallery-color.txt", colored)
	if Gallery(nil, 80, false) != "" {
		t.Error("no pictures must be nothing")
	}
	flat := Image{Width: 2, Height: 2, Pixels: []float32{0.5, 0.5, 0.5, 0.5}}
	if got := flat.Lines(false); len(got) != 1 || got[0] != "  " {
		t.Errorf("a flat picture is %q", got)
	}
}

func losses(n int) Plot {
	train, held := Series{Name: "training"}, Series{Name: "validation"}
	for i := range n {
		train.X = append(train.X, float64(i+1))
		train.Y = append(train.Y, 2.3*math.Exp(-float64(i)/40)+0.08+0.06*math.Sin(float64(i)*1.7))
		if i%20 == 19 {
			held.X = append(held.X, float64(i+1))
			held.Y = append(held.Y, 2.2*math.Exp(-float64(i)/45)+0.15)
		}
	}
	return Plot{Title: "digits", XLabel: "step", YLabel: "loss", Series: []Series{train, held}}
}

func TestPlots(t *testing.T) {
	log := losses(300)
	log.LogY = true
	nan := losses(60)
	nan.Series[0].Y[20], nan.Series[0].Y[40], nan.Series[0].Y[41] = math.NaN(), math.Inf(1), math.Inf(-1)
	flat := Plot{Series: []Series{{Y: []float64{3, 3, 3, 3}}}}
	single := Plot{Title: "one point", Series: []Series{{Y: []float64{0.5}}}}
	empty := Plot{Title: "nothing & <nobody>", Series: []Series{{Name: "a"}, {Name: "b", Y: []float64{math.NaN()}}}}
	large := Plot{LogX: true, YLabel: "tokens/s", Series: []Series{{X: []float64{1, 10, 100, 1000, 1e4}, Y: []float64{0, 123_456, 34_567, 98_765, 150_000}}}}
	for name, p := range map[string]Plot{"loss": losses(300), "log": log, "nan": nan, "flat": flat, "single": single, "empty": empty, "large": large} {
		plain := p.Terminal(72, 20, false)
		fits(t, plain, 72)
		golden(t, "plot-"+name+".txt", plain)
		svg := p.SVG(720, 400)
		wellFormed(t, svg)
		golden(t, "plot-"+name+".svg", svg)
	}
	golden(t, "plot-loss-color.txt", losses(300).Terminal(72, 20, true))
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Fatalf("a number is missing:\n%s", svg)
	}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}

// Whatever the numbers, sizes and names: the drawing fits and is well formed.
func TestPlotAnything(t *testing.T) {
	r := testutil.Rand(t)
	special := []float64{0, 1, -1, 5e-324, 1e-300, 1e300, -1e300, math.MaxFloat64, -math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 1 + 0x1p-50}
	number := func() float64 {
		if r.IntN(2) == 0 {
			return special[r.IntN(len(special))]
		}
		return math.Ldexp(r.NormFloat64(), r.IntN(60)-30)
	}
	for range 500 {
		p := Plot{LogX: r.IntN(2) == 0, LogY: r.IntN(2) == 0, Title: "t\x00<&>", XLabel: "x", YLabel: `"y"`}
		for range r.IntN(9) {
			s := Series{Name: strings.Repeat("n", r.IntN(12))}
			for range r.IntN(12) {
				s.Y = append(s.Y, number())
			}
			if r.IntN(2) == 0 {
				for range r.IntN(12) {
					s.X = append(s.X, number())
				}
			}
			p.Series = append(p.Series, s)
		}
		width, height := 30+r.IntN(100), r.IntN(40)
		fits(t, p.Terminal(width, height, r.IntN(2) == 0), width)
		wellFormed(t, p.SVG(r.IntN(900), r.IntN(500)))
		p.Terminal(r.IntN(12)-2, height, false)
	}
}

func TestLongCurveStaysSmall(t *testing.T) {
	s := Series{Y: make([]float64, 200_000)}
	for i := range s.Y {
		s.Y[i] = math.Sin(float64(i))
	}
	s.Y[77_777] = 9
	svg := Plot{Series: []Series{s}}.SVG(720, 400)
	if len(svg) > 50_000 {
		t.Errorf("%d bytes for one curve", len(svg))
	}
	// The outlier is the highest value, at the upper margin of 4 % of 108 %.
	if want := fmt.Sprintf("%.1f", 20+(400-52-20)*0.04/1.08); !strings.Contains(svg, " "+want) {
		t.Errorf("no point has the outlier's height %s", want)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		log       bool
		want      string
	}{
		{0, 1, false, "0 0.2 0.4 0.6 0.8 1.0"},
		{-1, 1, false, "-1.0 -0.5 0 0.5 1.0"},
		{0, 300, false, "0 100 200 300"},
		{0, 50_000, false, "0 10k 20k 30k 40k 50k"},
		{0, 3e6, false, "0 1M 2M 3M"},
		{0, 3e-6, false, "0 1e-06 2e-06 3e-06"},
		{0.01, 1000, true, "0.01 0.1 1 10 100 1k"},
		{1e3, 2e9, true, "1k 10k 100k 1M 10M 100M 1G"},
		{2e5, 1e6, false, "0.2M 0.4M 0.6M 0.8M 1.0M"},
		{2, 4, true, "2.0 2.5 3.0 3.5 4.0"},
		{1e-100, 1e100, true, "1e-100 1e-60 1e-20 1e+20 1e+60 1e+100"},
	} {
		var labels []string
		a := newAxis(c.low, c.high, c.log, 0, 5)
		last := math.Inf(-1)
		for _, k := range a.ticks {
			labels = append(labels, k.label)
			if k.at <= last || k.at < 0 || k.at > 1 {
				t.Errorf("[%g, %g]: tick %s at %v after %v", c.low, c.high, k.label, k.at, last)
			}
			last = k.at
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("[%g, %g] log %v: ticks %q, want %q", c.low, c.high, c.log, got, c.want)
		}
	}
}
