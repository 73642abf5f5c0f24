package joblog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/pickle"
)

// Dump is the record of a rank's last collectives that PyTorch's flight recorder writes.
type Dump struct {
	Rank    int // below 0: unknown; the file itself does not say it
	Version string
	Groups  map[string]group
	Calls   map[string][]call // collectives by process group, in order
	P2P     int               // sends and receives, which are not compared
}

// group is a process group of a dump.
type group struct {
	desc  string
	ranks []int
}

// call is a collective that a rank made.
type call struct {
	seq   int64
	op    string
	sizes string // of operands and results
	dtype string
	state string // "scheduled", "started" or "completed"
	site  string // the program's line
}

// done tells that it came to its end.
func (c call) done() bool { return c.state == "completed" }

const (
	recorderBytes = 256 << 20 // of a file, beyond which it is none
	mostCalls     = 1 << 20
)

// IsRecorder tells that a file begins as a record of the flight recorder does.
func IsRecorder(head []byte) bool {
	has := func(word string) bool { return bytes.Contains(head, []byte(word)) }
	begins := bytes.TrimLeft(head, " \t\r\n")
	if len(begins) == 0 || begins[0] != 0x80 && begins[0] != '{' || has("traceEvents") {
		return false
	}
	return has("collective_seq_id") || has("profiling_name") || has("pg_status") && has("pg_config")
}

// Recorder reads the record of a rank.
func Recorder(ctx context.Context, name string, r io.Reader) (*finding.Report, error) {
	limited := &io.LimitedReader{R: r, N: recorderBytes}
	var first [1]byte
	if _, err := io.ReadFull(limited, first[:]); err != nil {
		return nil, err
	}
	in := io.MultiReader(bytes.NewReader(first[:]), limited)
	d := &Dump{Rank: rankOf(name), Groups: map[string]group{}, Calls: map[string][]call{}}
	var err error
	if first[0] == 0x80 {
		err = d.pickled(in)
	} else {
		err = d.json(in)
	}
	d.unnamed()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.N == 0:
		return nil, fmt.Errorf("it goes on beyond byte %d, and a record of collectives is smaller", int64(recorderBytes))
	}
	report := d.report(name)
	if err != nil {
		if len(d.Calls) == 0 {
			return nil, err
		}
		report.Notes = append(report.Notes, fmt.Sprintf("read up to where it breaks: %v", err))
	}
	return report, nil
}

// unnamed gives the members of a group without a name, as gloo's group of all has none, to the only one that called.
func (d *Dump) unnamed() {
	for name := range d.Calls {
		if g := d.Groups[name]; len(g.ranks) == 0 && len(d.Calls) == 1 {
			g.ranks = d.Groups[""].ranks
			d.Groups[name] = g
		}
	}
}

// json reads a record as JSON, entry by entry.
func (d *Dump) json(r io.Reader) error {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return at(dec, errors.Join(err, errors.New("no object")))
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return at(dec, err)
		}
		if key == "entries" {
			err = d.entries(dec)
		} else {
			var v any
			if err = dec.Decode(&v); err == nil {
				d.field(fmt.Sprint(key), v)
			}
		}
		if err != nil {
			return at(dec, err)
		}
	}
	_, err := dec.Token()
	return at(dec, err)
}

// at says where an error is.
func at(dec *json.Decoder, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("byte %d: %w", dec.InputOffset(), err)
}

// entries reads the list of calls.
func (d *Dump) entries(dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('[') {
		return errors.New("entries are no list")
	}
	for n := 0; dec.More(); n++ {
		var e map[string]any
		if err := dec.Decode(&e); err != nil {
			return err
		}
		if n < mostCalls {
			d.entry(e)
		}
	}
	_, err = dec.Token()
	return err
}

// pickled reads a record as pickle: plain data, and no code.
func (d *Dump) pickled(r io.Reader) error {
	decoder := pickle.Decoder{Fold: func(m *pickle.ReadDict) any { return m.Map() }}
	v, err := decoder.Decode(r)
	if err != nil {
		return err
	}
	whole := map[string]any{"entries": v} // before version 1.0
	if m, ok := v.(*pickle.ReadDict); ok {
		whole = m.Map()
	}
	for key, v := range whole {
		if key != "entries" {
			d.field(key, v)
		}
	}
	for i, e := range items(whole["entries"]) {
		if m, ok := e.(map[string]any); ok && i < mostCalls {
			d.entry(m)
		}
	}
	return nil
}

// items are those of a list of either format.
func items(v any) []any {
	switch l := v.(type) {
	case []any:
		return l
	case *pickle.ReadList:
		return l.Items
	}
	return nil
}

// field takes one of the file's fields beside the calls.
func (d *Dump) field(key string, v any) {
	switch key {
	case "version":
		d.Version = fmt.Sprint(v)
	case "rank":
		if n, ok := whole(v); ok && d.Rank < 0 {
			d.Rank = int(n)
		}
	case "pg_config":
		groups, _ := v.(map[string]any)
		for name, v := range groups {
			g, _ := v.(map[string]any)
			d.Groups[name] = group{desc: text(g["desc"]), ranks: ranks(strings.Trim(text(g["ranks"]), "[]{}() "))}
		}
	}
}

// entry takes a call.
func (d *Dump) entry(e map[string]any) {
	if p2p, _ := e["is_p2p"].(bool); p2p {
		d.P2P++
		return
	}
	_, op, backend := strings.Cut(text(e["profiling_name"]), ":") // "nccl:all_reduce"
	if !backend {
		op = text(e["profiling_name"])
	}
	if strings.HasPrefix(op, "send") || strings.HasPrefix(op, "recv") {
		d.P2P++
		return
	}
	seq, ok := whole(e["collective_seq_id"])
	if !ok {
		seq, ok = whole(e["seq_id"])
	}
	if !ok || op == "" {
		return
	}
	name := ""
	if pg := items(e["process_group"]); len(pg) > 0 {
		name = text(pg[0])
		if len(pg) > 1 && d.Groups[name].desc == "" {
			g := d.Groups[name]
			g.desc = text(pg[1])
			d.Groups[name] = g
		}
	} else if id, ok := whole(e["pg_id"]); ok {
		name = fmt.Sprint(id)
	}
	d.Calls[name] = append(d.Calls[name], call{seq: seq, op: op, sizes: shape(e["input_sizes"]) + " → " + shape(e["output_sizes"]), dtype: shape(e["input_dtypes"]), state: stateOf(e), site: siteOf(e["frames"])})
}

// stateOf is how far a call came. Backends without events of the card leave it at "scheduled" and say when they are done with
// it.
func stateOf(e map[string]any) string {
	if gone, _ := e["retired"].(bool); gone && strings.HasPrefix(text(e["profiling_name"]), "gloo:") {
		return "completed"
	}
	return text(e["state"])
}

// whole is a whole number of either format.
func whole(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case json.Number:
		i, err := n.Int64()
		return i, err == nil
	}
	return 0, false
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// shape is a list of lists, as people write it.
func shape(v any) string {
	list := items(v)
	if list == nil {
		if v == nil {
			return ""
		}
		return fmt.Sprint(v)
	}
	parts := make([]string, 0, len(list))
	for _, x := range list[:min(len(list), 16)] {
		parts = append(parts, shape(x))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// siteOf is the first line of a stack that is not of a library.
func siteOf(frames any) string {
	for _, f := range items(frames) {
		m, _ := f.(map[string]any)
		file := text(m["filename"])
		if file == "" || strings.Contains(file, "site-packages") || strings.Contains(file, "dist-packages") || strings.Contains(file, "/torch/") || !strings.HasSuffix(file, ".py") {
			continue
		}
		n, _ := whole(m["line"])
		return fmt.Sprintf("%s:%d", file[strings.LastIndexAny(file, `/\`)+1:], n)
	}
	return ""
}

// report is what a record says by itself: alone it does not tell who is missing.
func (d *Dump) report(name string) *finding.Report {
	r := &finding.Report{File: name, Kind: "flight-recorder", Detail: d, Figures: map[string]any{"version": d.Version, "groups": len(d.Calls), "p2p": d.P2P}}
	if d.Rank >= 0 {
		r.Figures["rank"] = d.Rank
	}
	n, open := 0, 0
	for _, name := range slices.Sorted(maps.Keys(d.Calls)) {
		for _, c := range d.Calls[name] {
			n++
			if c.done() {
				continue
			}
			if open++; open == 1 {
				r.Figures["open_seq"], r.Figures["open_op"] = c.seq, c.op
			}
		}
	}
	r.Figures["calls"], r.Figures["open"] = n, open
	if open == 0 {
		r.Checked = append(r.Checked, fmt.Sprintf("all %d collectives came to their end", n))
	} else {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %d collectives had not ended when it was written, first %v number %v: give the folder with the records of all ranks, and the one that is missing is named", open, n, r.Figures["open_op"], r.Figures["open_seq"]))
	}
	return r
}
