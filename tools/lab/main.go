// Command lab looks at the lab as a person does, with Chromium: every explorer on a desktop, a tablet and a phone, light and dark. It
// changes controls and compares the figures of every widget with what the command prints that the page names, and leaves pictures. It
// fails when the console has an error, when something is fetched from elsewhere, when a page is wider than its window, when a figure
// differs, or when axe-core, given by its file, finds a violation.
//
//	go run -C tools ./lab OUT WARPLINE [axe.min.js]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/warpline-ml/warpline/tools/chrome"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("lab OUT WARPLINE [axe.min.js]")
	}
	if err := run(os.Args[1], os.Args[2], strings.Join(os.Args[3:], "")); err != nil {
		log.Fatal(err)
	}
}

// window is a size to look through.
type window struct {
	name          string
	width, height int64
	dark          bool
}

var windows = []window{{"desktop-light", 1440, 900, false}, {"tablet-dark", 820, 1180, true}, {"phone-light", 390, 844, false}, {"desktop-dark", 1440, 900, true}, {"tablet-light", 820, 1180, false}, {"phone-dark", 390, 844, true}}

// widget is what /api/widgets tells of one.
type widget struct {
	ID, Page string
	Measured bool
	Controls []struct {
		Name, Kind, Value string
		Min, Max          float64
		Options           []string
	}
}

// visit is a tab in the lab.
type visit struct {
	ctx  context.Context
	url  string // with the token
	base string
	out  string
	bin  string
	axe  string // its source
	c    *chrome.Complaints
}

func run(out, bin, axe string) error {
	dir, err := os.MkdirTemp("", "lab-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	served, url, err := chrome.Begin([]string{bin, "lab", "--no-open", "--json", "--dir", dir})
	if err != nil {
		return err
	}
	defer served.Process.Kill()
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	ctx, cancel := chrome.Browser()
	defer cancel()
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	base, _, _ := strings.Cut(url, "?")
	v := &visit{ctx: tab, url: url, base: strings.TrimSuffix(base, "/"), out: out, bin: bin, c: chrome.Listen(tab, base)}
	if axe != "" {
		text, err := os.ReadFile(axe)
		if err != nil {
			return err
		}
		v.axe = string(text)
	}
	return v.all()
}

// all looks at every page.
func (v *visit) all() error {
	var text string
	err := chromedp.Run(v.ctx, network.Enable(), cdplog.Enable(), chromedp.Navigate(v.url),
		chromedp.Evaluate(`fetch('/api/widgets').then(r => r.text())`, &text, awaited))
	if err != nil {
		return err
	}
	var widgets []widget
	if err := json.Unmarshal([]byte(text), &widgets); err != nil {
		return err
	}
	var pages []string
	if err := chromedp.Run(v.ctx, chromedp.Evaluate(`['/', ...[...document.querySelectorAll('#places a[href^="/explore/"]')].map(a => a.getAttribute('href'))]`, &pages)); err != nil {
		return err
	}
	for _, page := range pages {
		for _, win := range windows {
			if err := v.look(page, win); err != nil {
				return fmt.Errorf("%s, %s: %w", page, win.name, errors.Join(err, v.c.Err()))
			}
		}
	}
	if err := v.learn(); err != nil {
		return errors.Join(err, v.c.Err())
	}
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("WARPLINE_TEST_SEED"), 10, 64); err == nil {
		seed = n
	}
	r := rand.New(rand.NewPCG(seed, 0))
	if err := v.train(); err != nil {
		return fmt.Errorf("training: %w", errors.Join(err, v.c.Err()))
	}
	for _, w := range widgets {
		if err := v.play(&w, r); err != nil {
			return fmt.Errorf("%s: %w", w.ID, errors.Join(err, v.c.Err()))
		}
	}
	return v.c.Err()
}

// settled is whether all widgets that ask by themselves have their answers.
const settled = `[...document.querySelectorAll('section[data-widget]')].every(s => 'slow' in s.dataset || s.dataset.widget === 'steps' && s.dataset.state === 'done' || ['done', 'idle'].includes(s.dataset.state) && s.dataset.query !== undefined)`

// look shows a page in a window and keeps its picture.
func (v *visit) look(page string, w window) error {
	var overflow, took float64
	var picture []byte
	scheme := "light"
	if w.dark {
		scheme = "dark"
	}
	err := chromedp.Run(v.ctx, chromedp.EmulateViewport(w.width, w.height), chrome.Scheme(scheme), chromedp.Navigate(v.base+page),
		chrome.Until("answers", settled), chromedp.Sleep(200*time.Millisecond),
		chromedp.Evaluate(`document.documentElement.scrollWidth - window.innerWidth`, &overflow),
		chromedp.Evaluate(`performance.getEntriesByType('paint').find(p => p.name === 'first-contentful-paint')?.startTime || 0`, &took),
		chromedp.FullScreenshot(&picture, 100))
	if err != nil {
		return err
	}
	if overflow > 0 {
		v.c.Add("%s, %s: the page is %g pixels wider than the window", page, w.name, overflow)
	}
	fmt.Printf("%s, %s: first paint after %.0f ms\n", page, w.name, took)
	name := strings.Trim(strings.ReplaceAll(page, "/", "-"), "-")
	if name == "" {
		name = "home"
	}
	if err := os.WriteFile(filepath.Join(v.out, name+"-"+w.name+".png"), picture, 0o666); err != nil {
		return err
	}
	return v.judge(page + ", " + w.name)
}

// judge asks axe-core.
func (v *visit) judge(where string) error {
	if v.axe == "" {
		return nil
	}
	var found []string
	err := chromedp.Run(v.ctx, chromedp.Evaluate(v.axe+";0", nil),
		chromedp.Evaluate(`axe.run(document).then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map(n => n.html).join(' | ')))`, &found, awaited))
	for _, f := range found {
		v.c.Add("%s: %s", where, f)
	}
	return err
}

// train starts a training as a person does, waits for its end, and looks at its live view meanwhile.
func (v *visit) train() error {
	section := of("training")
	return chromedp.Run(v.ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(v.base+"/explore/training"),
		chromedp.Evaluate(section+`.querySelector('[data-action=start]').click()`, nil),
		chrome.Until("steps", fmt.Sprintf(`+%s.querySelector('[data-value=step]').dataset.raw > 2`, section)),
		chrome.Until("the end", section+`.dataset.state === 'done' && `+section+`.querySelector('[data-value=peak]').dataset.raw !== ''`))
}

// play changes each control of a widget, and compares what it shows with its command.
func (v *visit) play(w *widget, r *rand.Rand) error {
	if err := chromedp.Run(v.ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(v.base+w.Page), chrome.Until("answers", settled)); err != nil {
		return err
	}
	if err := v.compare(w); err != nil {
		return err
	}
	for _, c := range w.Controls {
		value := c.Value
		switch {
		case len(c.Options) > 0:
			value = c.Options[r.IntN(len(c.Options))]
		case c.Kind == "file":
			continue
		case c.Kind == "range" || c.Kind == "percent" || c.Kind == "number":
			value = strconv.FormatFloat(c.Min+float64(int(r.Float64()*(c.Max-c.Min))), 'g', -1, 64)
		case c.Kind == "checkbox":
			value = "true"
		default:
			continue
		}
		if err := v.set(w, c.Name, value); err != nil {
			return fmt.Errorf("%s = %s: %w", c.Name, value, err)
		}
		if err := v.set(w, c.Name, c.Value); err != nil { // not all values go together
			return fmt.Errorf("%s = %s again: %w", c.Name, c.Value, err)
		}
	}
	fmt.Printf("%s: figures are those of its command\n", w.ID)
	return nil
}

// of is a widget's section for scripts.
func of(id string) string {
	return fmt.Sprintf(`document.querySelector('section[data-widget="%s"]')`, id)
}

// set changes a control as a person does, and compares.
func (v *visit) set(w *widget, name, value string) error {
	change := fmt.Sprintf(`(() => { const i = %s.querySelector('[data-control="%s"]'); if (i.type === 'checkbox') i.checked = %q === 'true'; else i.value = %q;
		i.dispatchEvent(new Event('input', {bubbles: true})); })()`, of(w.ID), name, value, value)
	if err := chromedp.Run(v.ctx, chromedp.Evaluate(change, nil), chromedp.Sleep(50*time.Millisecond), chrome.Until("an answer", settled)); err != nil {
		return err
	}
	return v.compare(w)
}

// shown is what a widget shows.
type shown struct {
	State, Command string
	Values         []struct{ Name, Path, Raw string }
}

// compare compares the figures of a widget with what its command prints.
func (v *visit) compare(w *widget) error {
	if w.Measured {
		return nil
	}
	var s shown
	look := fmt.Sprintf(`(() => { const s = %s; return {State: s.dataset.state, Command: s.querySelector('[data-command]').textContent,
		Values: [...s.querySelectorAll('output[data-path]')].filter(o => o.dataset.path).map(o => ({Name: o.dataset.value, Path: o.dataset.path, Raw: o.dataset.raw}))}; })()`, of(w.ID))
	if err := chromedp.Run(v.ctx, chromedp.Evaluate(look, &s)); err != nil {
		return err
	}
	if s.Command == "" {
		return nil // nobody has asked yet
	}
	line := strings.Fields(strings.ReplaceAll(s.Command, "'", ""))
	raw, err := exec.Command(v.bin, append(line[1:], "--json")...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Command, err)
	}
	var answer any // the last line: findings come before what they are of
	for d := json.NewDecoder(bytes.NewReader(raw)); d.More(); {
		answer = nil
		if err := d.Decode(&answer); err != nil {
			return err
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
