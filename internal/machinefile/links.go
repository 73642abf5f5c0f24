package machinefile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

var (
	linkCard  = regexp.MustCompile(`^\s*GPU (\d+): (.+?) \(UUID: \S+\)`)
	linkRow   = regexp.MustCompile(`^\s*Link (\d+): (?:<)?(inactive|[\d.]+ GB/s)`)
	errorRow  = regexp.MustCompile(`^\s*Link (\d+): (Replay Errors|Recovery Errors|CRC Errors|Effective Errors|Malformed packet Errors): (\d+)`)
	topoRow   = regexp.MustCompile(`^\s*(GPU\d+|NIC\d+|mlx\d+_\d+)\s+(.+)$`)
	topoWords = regexp.MustCompile(`^(?:X|NV\d+|PIX|PXB|PHB|NODE|SYS|OK|CNS|GNS|TNS|NS|U|DR|N/A)$`)
)

// isLinks recognises nvidia-smi nvlink -s and -e, and topo -m and -p2p.
func isLinks(head string) bool {
	lines := headLines(head+"\n", 60)
	return slices.ContainsFunc(lines, linkCard.MatchString) && slices.ContainsFunc(lines, func(s string) bool { return linkRow.MatchString(s) || errorRow.MatchString(s) }) ||
		slices.ContainsFunc(lines, func(s string) bool { return len(matrixRow(s)) > 0 })
}

// linkedCard is a card with its links.
type linkedCard struct {
	Index  int              `json:"index"`
	Name   string           `json:"name"`
	Up     int              `json:"up"`
	Down   []int            `json:"down,omitempty"`
	Speed  float64          `json:"gb_per_s,omitempty"` // of the quickest link
	Slow   []int            `json:"slow,omitempty"`     // links that are slower
	Errors map[string]int64 `json:"errors,omitempty"`
	speeds map[int]float64
	line   int
}

// links are what a file says of links between cards.
type links struct {
	cards  []*linkedCard
	matrix [][]string // by card, to card 0, 1, …
	line   int        // of the matrix
}

// mostCards bounds the matrix.
const mostCards = 256

// matrixRow are the cells of a row of topo -m between cards, or nil.
func matrixRow(line string) []string {
	m := topoRow.FindStringSubmatch(line)
	if m == nil || !strings.HasPrefix(m[1], "GPU") {
		return nil
	}
	var cells []string
	for _, word := range strings.Fields(m[2]) {
		if !topoWords.MatchString(word) {
			break
		}
		cells = append(cells, word)
	}
	if i, _ := strconv.Atoi(m[1][3:]); i < len(cells) && cells[i] == "X" {
		return cells
	}
	return nil
}

func diagnoseLinks(r *finding.Report, text *reader) error {
	l := &links{}
	if err := text.lines(l.read); err != nil {
		return err
	}
	l.report(r)
	return nil
}

func (l *links) read(n int, line string) {
	if m := linkCard.FindStringSubmatch(line); m != nil && len(l.cards) < mostCards {
		i, _ := strconv.Atoi(m[1])
		l.cards = append(l.cards, &linkedCard{Index: i, Name: m[2], Errors: map[string]int64{}, speeds: map[int]float64{}, line: n})
		return
	}
	if cells := matrixRow(line); cells != nil && len(l.matrix) < mostCards {
		if l.line == 0 {
			l.line = n
		}
		l.matrix = append(l.matrix, cells)
		return
	}
	if len(l.cards) == 0 {
		return
	}
	l.cards[len(l.cards)-1].read(line)
}

func (c *linkedCard) read(line string) {
	if m := errorRow.FindStringSubmatch(line); m != nil {
		n, _ := strconv.ParseInt(m[3], 10, 64)
		c.Errors[m[2]] += n
		return
	}
	m := linkRow.FindStringSubmatch(line)
	if m == nil {
		return
	}
	number, _ := strconv.Atoi(m[1])
	speed, err := strconv.ParseFloat(strings.TrimSuffix(m[2], " GB/s"), 64)
	if err != nil || speed == 0 {
		c.Down = append(c.Down, number)
		return
	}
	c.Up++
	c.speeds[number] = speed
	c.Speed = max(c.Speed, speed)
}

// linksOf are the NVLinks of models whose board has them all wired, by a part of their names.
var linksOf = []struct {
	name  string
	links int
}{{"GB200", 18}, {"B200", 18}, {"H200", 18}, {"H100 80GB HBM3", 18}, {"A100-SXM", 12}, {"V100-SXM", 6}}

func (c *linkedCard) wired() int {
	for _, m := range linksOf {
		if strings.Contains(c.Name, m.name) && !strings.Contains(c.Name, "NVL") {
			return m.links
		}
	}
	return 0
}

// sick is why a card's links are not what they should be, or nothing.
func (c *linkedCard) sick() (out []finding.Evidence) {
	for number, speed := range c.speeds {
		if speed < 0.95*c.Speed {
			c.Slow = append(c.Slow, number)
		}
	}
	slices.Sort(c.Slow)
	switch wired := c.wired(); {
	case len(c.Down) > 0 && (c.Up > 0 || wired > 0):
		out = append(out, says("links_up", c.Up, "GPU %d (%s): %d links are up, and %s inactive", c.Index, c.Name, c.Up, numbers(c.Down)))
	case c.Up > 0 && c.Up < wired:
		out = append(out, says("links_up", c.Up, "GPU %d (%s): %d links are listed, and this model has %d", c.Index, c.Name, c.Up, wired))
	}
	if len(c.Slow) > 0 {
		out = append(out, says("links_slow", len(c.Slow), "GPU %d: %s slower than %.1f GB/s", c.Index, numbers(c.Slow), c.Speed))
	}
	for _, name := range []string{"Replay Errors", "Recovery Errors", "CRC Errors"} {
		if n := c.Errors[name]; n > 0 && (name != "CRC Errors" || n > mostCRC) {
			out = append(out, says(name, n, "GPU %d: %d %s", c.Index, n, strings.ToLower(name)))
		}
	}
	return out
}

// mostCRC are errors that links mend by themselves: DCGM warns from so many a second on.
const mostCRC = 100

func numbers(all []int) string {
	words := make([]string, len(all))
	for i, n := range all {
		words[i] = strconv.Itoa(n)
	}
	if len(all) == 1 {
		return "link " + words[0] + " is"
	}
	return "links " + strings.Join(words, ", ") + " are"
}

// linkRules are the rules of links.
var linkRules = []struct {
	rule  string
	judge func(*links) (*finding.Finding, int)
}{
	{"D52", (*links).sick},
	{"D39", (*links).peers},
}

func (l *links) report(r *finding.Report) {
	if l.cards != nil {
		r.Figures["cards"] = l.cards
	}
	if l.matrix != nil {
		r.Figures["matrix"] = l.matrix
	}
	for _, rule := range linkRules {
		if f, line := rule.judge(l); f != nil {
			f.Rule, f.Line = rule.rule, lineNumber(line)
			r.Findings = append(r.Findings, *f)
		}
	}
	for _, c := range l.cards {
		if c.Up == 0 && len(c.Down) == 0 && len(c.Errors) == 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("GPU %d: could not be judged, since nothing is said of its links", c.Index))
		}
	}
	if len(r.Findings) == 0 {
		r.Checked = append(r.Checked, l.healthy()...)
	}
}

// sick is D52: links that are down, slow or full of errors.
func (l *links) sick() (*finding.Finding, int) {
	var evidence []finding.Evidence
	line := 0
	for _, c := range l.cards {
		if sick := c.sick(); sick != nil {
			evidence = append(evidence, sick...)
			line = cmp.Or(line, c.line)
		}
	}
	if uneven := l.uneven(); uneven != nil {
		evidence = append(evidence, *uneven)
		line = cmp.Or(line, l.line)
	}
	if evidence == nil {
		return nil, 0
	}
	return ailing("D52", finding.High, "collectives at the links' speed", evidence...), line
}

func (l *links) healthy() (out []string) {
	for _, c := range l.cards {
		switch {
		case c.Up > 0:
			out = append(out, fmt.Sprintf("GPU %d: %d links are up, at %.1f GB/s", c.Index, c.Up, c.Speed))
		case len(c.Down) > 0:
			out = append(out, fmt.Sprintf("GPU %d: no link is up, as on a card without a bridge", c.Index))
		}
		if len(c.Errors) > 0 {
			out = append(out, fmt.Sprintf("GPU %d: no errors that links do not mend by themselves", c.Index))
		}
	}
	if l.matrix != nil {
		out = append(out, fmt.Sprintf("%d cards in the matrix", len(l.matrix)))
	}
	return out
}

// pairs gives the words between each two cards to do.
func (l *links) pairs(do func(a, b int, word string)) {
	for a, row := range l.matrix {
		for b := a + 1; b < min(len(row), len(l.matrix)); b++ {
			do(a, b, row[b])
		}
	}
}

// uneven is a pair of cards with fewer links than all others, in a machine whose cards are all joined by switches: there each
// pair has all links of a card.
func (l *links) uneven() *finding.Evidence {
	most, least, pairs, joined := 0, 1<<30, 0, 0
	who := ""
	l.pairs(func(a, b int, word string) {
		pairs++
		n, err := strconv.Atoi(strings.TrimPrefix(word, "NV"))
		if err != nil || !strings.HasPrefix(word, "NV") {
			return
		}
		joined++
		most = max(most, n)
		if n < least {
			least, who = n, fmt.Sprintf("GPU%d and GPU%d", a, b)
		}
	})
	if joined < pairs || pairs < 3 || most < 6 || least == most {
		return nil
	}
	e := says("links", least, "%s have %d links, other pairs %d", who, least, most)
	return &e
}

// refusals are words of topo -p2p, of pairs that cannot copy directly although the cards could.
var refusals = map[string]string{"CNS": "the chipset does not support it", "TNS": "the way between them does not"}

// peers is D39: cards that cannot copy to each other.
func (l *links) peers() (*finding.Finding, int) {
	n, first := 0, ""
	l.pairs(func(a, b int, word string) {
		if why := refusals[word]; why != "" {
			if n++; n == 1 {
				first = fmt.Sprintf("from GPU%d to GPU%d: %s (%s)", a, b, why, word)
			}
		}
	})
	if n == 0 {
		return nil, 0
	}
	return &finding.Finding{Title: "cards cannot copy to each other directly", Evidence: []finding.Evidence{says("pairs", n, "%d pairs; %s", n, first)}, Confidence: finding.Medium,
		Fix: "look at the firmware's settings of IOMMU and ACS; virtual machines need cards passed through together", Gain: finding.Gain{Text: "collectives without a detour by the host's memory"}, DisprovedBy: "all_reduce reaches the links' speed"}, l.line
}
