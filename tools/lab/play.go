package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chromedp/chromedp"

	"github.com/warpline-ml/warpline/tools/chrome"
)

// of is a widget's section for scripts.
func of(id string) string {
	return fmt.Sprintf(`document.querySelector('section[data-widget="%s"]')`, id)
}

// open shows a page on a desktop.
func (v *visit) open(page string) error {
	return v.do(chromedp.EmulateViewport(1440, 900), chrome.Scheme("light"), chromedp.Navigate(v.base+page), chrome.Until("answers", settled))
}

// press presses a button of a widget, and waits until it has done what that asks.
func (v *visit) press(id, action string) error {
	script := fmt.Sprintf(`(() => { const s = %s; s.dataset.state = 'pressed'; s.querySelector('[data-action="%s"]').click(); })()`, of(id), action)
	return v.do(chromedp.Evaluate(script, nil), chrome.Until(id+": "+action, answered(id)))
}

// answered is whether a widget has shown an answer.
func answered(id string) string {
	return fmt.Sprintf(`['done', 'idle', 'error'].includes(%s.dataset.state)`, of(id))
}

// train starts a training as a person does, and waits for its end.
func (v *visit) train() error {
	section := of("training")
	if err := v.open("/explore/training"); err != nil {
		return err
	}
	err := v.do(chromedp.Evaluate(section+`.querySelector('[data-action=start]').click()`, nil),
		chrome.Until("steps of the training", fmt.Sprintf(`+%s.querySelector('[data-value=step]').dataset.raw > 2`, section)),
		chrome.Until("the end of the training", section+`.dataset.state === 'done' && `+section+`.querySelector('[data-value=peak]').dataset.raw !== ''`))
	if err != nil {
		return err
	}
	return v.keepJudged("training-ended")
}

// blocks looks at the allocator's blocks while a training runs, and stops it.
func (v *visit) blocks() error {
	if err := v.open("/explore/memory"); err != nil {
		return err
	}
	section := of("blocks")
	err := v.do(chromedp.Evaluate(section+`.querySelector('[data-action=start]').click()`, nil),
		chrome.Until("blocks", section+`.querySelector('[data-value=allocated]').dataset.raw > 0 && `+section+`.querySelectorAll('[data-picture] rect').length > 10`))
	if err != nil {
		return err
	}
	if err := v.keepJudged("blocks"); err != nil {
		return err
	}
	return v.do(chromedp.Evaluate(section+`.querySelector('[data-action=pause]').click()`, nil), chrome.Until("the end of the training", section+`.dataset.state === 'done'`))
}

// steps walks through a kernel: a step, another, back to where the first ended, and on to the end.
func (v *visit) steps() error {
	if err := v.open("/explore/architecture"); err != nil {
		return err
	}
	var lines []string
	for _, action := range []string{"step", "step", "back", "continue"} {
		var s struct{ State, Line, Reason string }
		look := fmt.Sprintf(`(() => { const s = %s, raw = n => s.querySelector('[data-value=' + n + ']').dataset.raw; return {State: s.dataset.state, Line: raw('line'), Reason: raw('reason')}; })()`, of("steps"))
		if err := v.press("steps", action); err != nil {
			return err
		}
		if err := v.do(chromedp.Evaluate(look, &s)); err != nil {
			return err
		}
		lines = append(lines, s.Line)
		if s.State != "done" || (s.Reason == "the end") != (action == "continue") {
			v.c.Add("steps: %s leads to line %s, %s, because of %s", action, s.Line, s.State, s.Reason)
		}
	}
	if lines[0] == lines[1] || lines[0] != lines[2] {
		v.c.Add("steps: two steps lead to lines %s and %s, and back from there is %s", lines[0], lines[1], lines[2])
	}
	return v.keepJudged("steps-ended")
}

// play changes each control of a widget, then all, and compares what it shows with its command. What is asked by a button is asked once.
func (v *visit) play(w *widget, r *rand.Rand) error {
	if err := v.open(w.Page); err != nil {
		return err
	}
	var slow bool
	if err := v.do(chromedp.Evaluate(`'slow' in `+of(w.ID)+`.dataset`, &slow)); err != nil {
		return err
	}
	switch {
	case w.Needs != "":
		if err := v.drop(w); err != nil {
			return err
		}
	case slow:
		if err := v.press(w.ID, "start"); err != nil {
			return err
		}
	default:
		if err := v.compare(w); err != nil {
			return err
		}
		if err := v.vary(w, r); err != nil {
			return err
		}
	}
	fmt.Printf("%s: figures are those of its command\n", w.ID)
	return v.keepJudged("played-" + w.ID)
}

// vary changes each control of a widget and puts it back, for not all values go together, and then changes all at once.
func (v *visit) vary(w *widget, r *rand.Rand) error {
	all := map[string]string{}
	for _, c := range w.Controls {
		value, ok := some(&c, r)
		if !ok {
			continue
		}
		all[c.Name] = value
		if err := v.set(w, map[string]string{c.Name: value}); err != nil {
			return err
		}
		if err := v.set(w, map[string]string{c.Name: c.Value}); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	return v.set(w, all)
}

// some is a value that a person could give a control; texts and files are left alone.
func some(c *control, r *rand.Rand) (string, bool) {
	switch {
	case len(c.Options) > 0:
		return c.Options[r.IntN(len(c.Options))], true
	case c.Kind == "range" || c.Kind == "percent" || c.Kind == "number":
		return strconv.FormatFloat(c.Min+float64(int(r.Float64()*(c.Max-c.Min))), 'g', -1, 64), true
	case c.Kind == "checkbox":
		return "true", true
	}
	return "", false
}

// dropped are files for the widgets that need one.
var dropped = map[string]string{"snapshot": "snapshot/testdata/steady.pickle.gz", "trace": "kineto/testdata/hta-triton.json.gz"}

// drop gives a widget a file.
func (v *visit) drop(w *widget) error {
	path, err := filepath.Abs(filepath.Join("../internal", dropped[w.ID]))
	if err != nil {
		return err
	}
	err = v.do(chromedp.Evaluate(of(w.ID)+`.dataset.state = 'dropped'`, nil), chromedp.SetUploadFiles(fmt.Sprintf(`section[data-widget="%s"] [data-file]`, w.ID), []string{path}, chromedp.ByQuery),
		chrome.Until("what is told of a file", answered(w.ID)))
	if err != nil {
		return err
	}
	return v.compare(w)
}

// set changes controls as a person does, and compares.
func (v *visit) set(w *widget, values map[string]string) error {
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	change := fmt.Sprintf(`(() => { const s = %s; s.dataset.state = 'changed';
		for (const [name, value] of Object.entries(%s)) {
			const i = s.querySelector('[data-control="' + name + '"]');
			if (i.type === 'checkbox') i.checked = value === 'true'; else i.value = value;
			i.dispatchEvent(new Event('input', {bubbles: true}));
		} })()`, of(w.ID), text)
	if err := v.do(chromedp.Evaluate(change, nil), chrome.Until("an answer to "+string(text), answered(w.ID))); err != nil {
		return err
	}
	return v.compare(w)
}

// shown is what a widget shows.
type shown struct {
	State, Command, Query, Problem string
	Seen                           bool // figures and picture
	Values                         []struct{ Name, Path, Raw string }
}

// compare compares what a widget shows with what its command prints: its figures, or why it was refused.
func (v *visit) compare(w *widget) error {
	var s shown
	look := fmt.Sprintf(`(() => { const s = %s; return {State: s.dataset.state, Command: s.querySelector('[data-command]').textContent, Query: s.dataset.query || '', Problem: s.querySelector('.problem').textContent,
		Seen: s.querySelector('[data-picture]').checkVisibility({visibilityProperty: true}),
		Values: [...s.querySelectorAll('output[data-path]')].filter(o => o.dataset.path).map(o => ({Name: o.dataset.value, Path: o.dataset.path, Raw: o.dataset.raw}))}; })()`, of(w.ID))
	if err := v.do(chromedp.Evaluate(look, &s)); err != nil {
		return err
	}
	if w.Measured && s.State == "error" {
		v.c.Add("%s: %s: %s", w.ID, s.Command, s.Problem)
	}
	if w.Measured || s.Command == "" { // two answers differ, or nobody has asked yet
		return nil
	}
	line := strings.Fields(strings.ReplaceAll(s.Command, "'", ""))
	said, err := v.command(append(line[1:], "--json")...)
	if err != nil {
		return err
	}
	if said.status > 1 {
		v.refused(w, &s, said.said)
		return nil
	}
	if s.State == "error" || s.Problem != "" || !s.Seen {
		v.c.Add("%s: %s is answered, and it shows %q", w.ID, s.Command, s.Problem)
		return nil
	}
	return v.figures(w, &s, said.out)
}

// refused compares what a widget shows of a question that its command cannot answer: why, and no figures, for these were of another.
func (v *visit) refused(w *widget, s *shown, said string) {
	fmt.Printf("%s: %s is refused\n", w.ID, s.Command)
	if s.State != "error" || s.Problem != told(said) || s.Seen {
		v.c.Add("%s: %s is refused with %q, and it is %s and shows %q; its figures are seen: %t", w.ID, s.Command, told(said), s.State, s.Problem, s.Seen)
		return
	}
	v.c.Refused(v.base + "/api/widgets/" + w.ID + "?" + s.Query)
}

// told is the error that a command ends with, and what to do.
func told(said string) (text string) {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "error: "); ok {
			text = rest
		} else if rest, ok := strings.CutPrefix(line, "hint: "); ok {
			text += ": " + rest
		}
	}
	return text
}

// figures compares figures.
func (v *visit) figures(w *widget, s *shown, printed string) error {
	var answer any // the last line: findings come before what they are of
	for d := json.NewDecoder(strings.NewReader(printed)); d.More(); {
		answer = nil
		if err := d.Decode(&answer); err != nil {
			return fmt.Errorf("%s: %w", s.Command, err)
		}
	}
	for _, x := range s.Values {
		if want := text(at(answer, x.Path)); !same(x.Raw, want) {
			v.c.Add("%s: %s shows %s, %s has %s", w.ID, x.Name, x.Raw, s.Command, want)
		}
	}
	return nil
}

// at is a part of an answer by its path.
func at(v any, path string) any {
	for _, k := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[k]
		case []any:
			if k == "#" {
				v = float64(len(x))
				continue
			}
			n, err := strconv.Atoi(k)
			if err != nil || n >= len(x) {
				return nil
			}
			v = x[n]
		default:
			return nil
		}
	}
	return v
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

func same(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return a == b || err1 == nil && err2 == nil && x == y
}
