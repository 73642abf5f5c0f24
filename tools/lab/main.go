// Command lab looks at the lab as a person does, with Chromium: every explorer on a light desktop, a dark phone and by turns in one of the
// other windows, on a tablet for one, or in all of them with WARPLINE_TEST_WALK=all. It changes controls and compares the figures of every
// widget with what the command prints that the page names, and leaves pictures. It fails when the console has an error, when something is
// fetched from elsewhere, when a page is wider than its window, when a figure differs, or when axe-core, given by its file, finds a violation.
//
// What it takes and how quickly it answers is printed, with a trace of a million events, say; with the word figures nothing else is done.
//
//	go run -C tools ./lab OUT WARPLINE TRACE [axe.min.js|figures]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

func main() { chrome.Main("lab OUT WARPLINE TRACE [axe.min.js|figures]", 3, run) }

// window is a size to look through.
type window struct {
	name          string
	width, height int64
	dark          bool
}

// windows are the sizes and schemes. The first and the last have between them all that axe-core can tell apart.
var windows = []window{{"desktop-light", 1440, 900, false}, {"tablet-dark", 820, 1180, true}, {"phone-light", 390, 844, false}, {"desktop-dark", 1440, 900, true}, {"tablet-light", 820, 1180, false}, {"phone-dark", 390, 844, true}}

// widget is what /api/widgets tells of one.
type widget struct {
	ID, Page string
	Needs    string
	Measured bool
	Controls []control
}

type control struct {
	Name, Kind, Value string
	Min, Max          float64
	Options           []string
}

// visit is a tab in the lab.
type visit struct {
	ctx  context.Context
	url  string // with the token
	base string
	out  string
	bin  string
	axe  string // its source
	pid  int    // of the lab
	c    *chrome.Complaints
}

func run(ctx context.Context, out string, others []string) error {
	bin, trace, axe := others[0], others[1], strings.Join(others[2:], "")
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
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	base, _, _ := strings.Cut(url, "?")
	v := &visit{ctx: tab, url: url, base: strings.TrimSuffix(base, "/"), out: out, bin: bin, c: chrome.Listen(tab, base), pid: served.Process.Pid}
	if axe != "" && axe != "figures" {
		text, err := os.ReadFile(axe)
		if err != nil {
			return err
		}
		v.axe = string(text)
	}
	return v.all(trace, axe == "figures")
}

// all looks at every page, and measures.
func (v *visit) all(trace string, figures bool) error {
	var text string
	if err := chromedp.Run(v.ctx); err != nil { // without a bound, for the tab would end with it
		return err
	}
	err := v.do(network.Enable(), cdplog.Enable(), chromedp.Navigate(v.url),
		chromedp.Evaluate(`fetch('/api/widgets').then(r => r.text())`, &text, awaited))
	if err != nil {
		return err
	}
	var widgets []widget
	if err := json.Unmarshal([]byte(text), &widgets); err != nil {
		return err
	}
	var pages []string
	if err := v.do(chromedp.Evaluate(`['/', ...[...document.querySelectorAll('#places a[href^="/explore/"]')].map(a => a.getAttribute('href'))]`, &pages)); err != nil {
		return err
	}
	if err := v.measure(pages, trace); err != nil || figures {
		return errors.Join(err, v.c.Err())
	}
	for n, page := range pages {
		for i, win := range windows {
			judged := i == 0 || i == len(windows)-1
			if !judged && i != 1+n%(len(windows)-2) && os.Getenv("WARPLINE_TEST_WALK") != "all" {
				continue
			}
			if err := v.look(page, win, judged); err != nil {
				return fmt.Errorf("%s, %s: %w", page, win.name, errors.Join(err, v.c.Err()))
			}
		}
	}
	for _, part := range []struct {
		name  string
		visit func() error
	}{{"timeline", v.trace}, {"lessons", v.learn}, {"training", v.train}, {"blocks", v.blocks}, {"steps", v.steps}} {
		if err := part.visit(); err != nil {
			return fmt.Errorf("%s: %w", part.name, errors.Join(err, v.c.Err()))
		}
	}
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("WARPLINE_TEST_SEED"), 10, 64); err == nil {
		seed = n
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for _, w := range widgets {
		if err := v.play(&w, r); err != nil {
			return fmt.Errorf("%s: %w", w.ID, errors.Join(err, v.c.Err()))
		}
	}
	return v.c.Err()
}

// do does actions. An error tells what the widgets of the page were asked, and how far they are.
func (v *visit) do(actions ...chromedp.Action) error {
	err := chrome.Run(v.ctx, actions...)
	if err == nil {
		return nil
	}
	var stand string
	if chrome.Run(v.ctx, chromedp.Evaluate(`location.pathname + [...document.querySelectorAll('section[data-widget]')].map(s => '; ' + s.dataset.widget + ' is ' + s.dataset.state + ', asked ' +
		new URLSearchParams([...s.querySelectorAll('[data-control]')].map(i => [i.dataset.control, i.type === 'checkbox' ? i.checked : i.value])) + (s.querySelector('.problem').textContent && ', and says ' + s.querySelector('.problem').textContent)).join('')`, &stand)) != nil {
		stand = "nobody knows: the page does not answer"
	}
	return fmt.Errorf("%w; at %s", err, stand)
}

// reply is what a command says.
type reply struct {
	out, said string
	status    int
}

// command runs a command of the program, within chrome.Longest.
func (v *visit) command(args ...string) (reply, error) {
	ctx, cancel := context.WithTimeout(v.ctx, chrome.Longest)
	defer cancel()
	var said strings.Builder
	cmd := exec.CommandContext(ctx, v.bin, args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		err = nil
	}
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return reply{string(out), said.String(), cmd.ProcessState.ExitCode()}, nil
}

// settled is whether all widgets that ask by themselves have their answers.
const settled = `[...document.querySelectorAll('section[data-widget]')].every(s => 'slow' in s.dataset || s.dataset.widget === 'steps' && s.dataset.state === 'done' || ['done', 'idle'].includes(s.dataset.state) && s.dataset.query !== undefined)`

// look shows a page in a window and keeps a picture, which is judged or not.
func (v *visit) look(page string, w window, judged bool) error {
	var took float64
	scheme := "light"
	if w.dark {
		scheme = "dark"
	}
	err := v.do(chromedp.EmulateViewport(w.width, w.height), chrome.Scheme(scheme), chromedp.Navigate(v.base+page),
		chrome.Until("answers", settled), chromedp.Sleep(200*time.Millisecond),
		chromedp.Evaluate(`performance.getEntriesByType('paint').find(p => p.name === 'first-contentful-paint')?.startTime || 0`, &took))
	if err != nil {
		return err
	}
	fmt.Printf("%s, %s: first paint after %.0f ms\n", page, w.name, took)
	name := strings.Trim(strings.ReplaceAll(page, "/", "-"), "-")
	if name == "" {
		name = "home"
	}
	if judged {
		return v.keepJudged(name + "-" + w.name)
	}
	return v.keep(name + "-" + w.name)
}

// keep keeps a picture of what is shown.
func (v *visit) keep(name string) error {
	var overflow float64
	var picture []byte
	err := v.do(chromedp.Evaluate(`document.documentElement.scrollWidth - window.innerWidth`, &overflow), chromedp.FullScreenshot(&picture, 100))
	if err != nil {
		return err
	}
	if overflow > 0 {
		v.c.Add("%s: the page is %g pixels wider than the window", name, overflow)
	}
	return os.WriteFile(filepath.Join(v.out, name+".png"), picture, 0o666)
}

// keepJudged keeps a picture and judges what is shown.
func (v *visit) keepJudged(name string) error {
	if err := v.keep(name); err != nil {
		return err
	}
	return v.judge(name)
}

// judge asks axe-core.
func (v *visit) judge(where string) error {
	if v.axe == "" {
		return nil
	}
	var found []string
	err := v.do(chromedp.Evaluate(v.axe+";0", nil),
		chromedp.Evaluate(`axe.run(document).then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3).map(n => n.html).join(' | ')))`, &found, awaited))
	for _, f := range found {
		v.c.Add("%s: %s", where, f)
	}
	return err
}
