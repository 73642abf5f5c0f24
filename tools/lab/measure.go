package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/warpline-ml/warpline/tools/chrome"
)

// measure prints what the lab costs and how quickly it answers. Nothing of it fails: machines that test are busy.
func (v *visit) measure(pages []string, trace string) error {
	if err := v.resting(); err != nil {
		return err
	}
	var paints []float64
	for _, page := range pages {
		took, err := v.paint(page)
		if err != nil {
			return err
		}
		paints = append(paints, took)
	}
	tell("first paint of %d pages, ms", paints)
	if err := v.echoes(pages); err != nil {
		return err
	}
	return v.million(trace)
}

// tell prints the median, the 95th percentile and the largest of some numbers.
func tell(what string, all []float64) {
	slices.Sort(all)
	at := func(share float64) float64 { return all[min(int(share*float64(len(all))), len(all)-1)] }
	if strings.Contains(what, "%d") {
		what = fmt.Sprintf(what, len(all))
	}
	fmt.Printf("measured: %s: median %.1f, p95 %.1f, most %.1f\n", what, at(0.5), at(0.95), all[len(all)-1])
}

// resting tells the memory of the lab before anybody has asked for more than its first page.
func (v *visit) resting() error {
	if runtime.GOOS != "linux" {
		return nil
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		for _, field := range []string{"VmRSS:", "RssAnon:"} {
			if kib, ok := strings.CutPrefix(line, field); ok {
				n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(kib), " kB"))
				fmt.Printf("measured: the lab at rest, %s %.1f MiB\n", field, float64(n)/1024)
			}
		}
	}
	return nil
}

// paint is how many milliseconds after it was asked for a page shows something.
func (v *visit) paint(page string) (took float64, err error) {
	return took, v.do(chromedp.EmulateViewport(1440, 900), chromedp.Navigate(v.base+page), chrome.Until("a paint", `performance.getEntriesByType('paint').some(p => p.name === 'first-contentful-paint')`),
		chromedp.Evaluate(`performance.getEntriesByType('paint').find(p => p.name === 'first-contentful-paint').startTime`, &took))
}

// echoes measures from the input of each control to the frame in which it shows, and from each preset to its figures.
func (v *visit) echoes(pages []string) error {
	var echo, figures []float64
	for _, page := range pages {
		if page == "/" {
			continue
		}
		var took struct{ Echo, Figures []float64 }
		err := v.do(chromedp.Navigate(v.base+page), chrome.Until("answers", settled), chromedp.Evaluate(`(async () => {
			const frame = () => new Promise(r => requestAnimationFrame(() => setTimeout(r, 0))), took = {Echo: [], Figures: []};
			for (const i of document.querySelectorAll('section[data-widget] input[type=range][data-control]')) {
				const begin = performance.now();
				i.dispatchEvent(new Event('input', {bubbles: true}));
				await frame();
				took.Echo.push(performance.now() - begin);
				const s = i.closest('section');
				while (s.dataset.state === 'running') await frame();
			}
			for (const s of document.querySelectorAll('section[data-widget]:not([data-slow])')) {
				for (const b of s.querySelectorAll('[data-preset]')) {
					s.dataset.state = 'pressed';
					const begin = performance.now();
					b.click();
					while (!['done', 'idle', 'error'].includes(s.dataset.state)) await frame();
					took.Figures.push(performance.now() - begin);
				}
			}
			return took;
		})()`, &took, awaited))
		if err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		echo, figures = append(echo, took.Echo...), append(figures, took.Figures...)
	}
	tell("echo of %d controls, ms", echo)
	tell("figures of %d presets, ms", figures)
	return nil
}

// canvas is the timeline of the trace page.
const canvas = `document.querySelector('.trace canvas')`

// load drops a trace and waits until all of its page is there.
func (v *visit) load(path string) (took time.Duration, err error) {
	if err := v.open("/explore/trace"); err != nil {
		return 0, err
	}
	begin, section := time.Now(), of("trace")
	var trouble string
	err = v.do(chromedp.SetUploadFiles(`section[data-widget="trace"] [data-file]`, []string{path}, chromedp.ByQuery),
		chrome.Until("the timeline", section+`.dataset.state === 'error' || `+section+`.dataset.state === 'done' && `+canvas+`?.dataset.ready === 'true' && / of /.test(document.querySelector('[data-picture] > div > [role=status]').textContent)`),
		chromedp.Evaluate(section+`.dataset.state === 'error' ? `+section+`.querySelector('.problem').textContent : ''`, &trouble))
	if err == nil && trouble != "" {
		err = fmt.Errorf("%s: %s", path, trouble)
	}
	return time.Since(begin), err
}

// million measures a large trace: until it is there, the frames of five seconds of moving and zooming, and the memory of the page.
func (v *visit) million(trace string) error {
	path, err := filepath.Abs(trace)
	if err != nil {
		return err
	}
	took, err := v.load(path)
	if err != nil {
		return err
	}
	var events string
	var frames []float64
	err = v.do(chromedp.Evaluate(`document.querySelector('[data-picture] > div > [role=status]').textContent`, &events), chromedp.Evaluate(`(async () => {
		const c = `+canvas+`, box = c.getBoundingClientRect(), out = [], frame = () => new Promise(requestAnimationFrame);
		const wheel = init => c.dispatchEvent(new WheelEvent('wheel', {bubbles: true, cancelable: true, clientX: box.left + box.width * (0.3 + 0.5 * Math.random()), clientY: box.top + 100, ...init}));
		let last = await frame();
		const begin = last;
		for (let i = 0; last - begin < 5000; i++) {
			if (i % 3 === 0) wheel({ctrlKey: true, deltaY: i % 180 < 120 ? -60 : 120});
			else wheel({shiftKey: true, deltaY: i % 240 < 120 ? 60 : -60});
			const now = await frame();
			out.push(now - last);
			last = now;
		}
		return out;
	})()`, &frames, awaited))
	if err != nil {
		return err
	}
	fmt.Printf("measured: trace page, %s: there after %.1f s\n", events, took.Seconds())
	tell("frames of moving and zooming, %d intervals, ms", frames)
	return v.do(chromedp.ActionFunc(func(ctx context.Context) error {
		used, _, embedder, backing, err := cdpruntime.GetHeapUsage().Do(ctx)
		fmt.Printf("measured: heap of the trace page: %.0f MB of objects, %.0f MB of the page's, %.0f MB of arrays\n", used/1e6, embedder/1e6, backing/1e6)
		return err
	}))
}

// trace does with a trace's timeline what a person does: finds a name, follows a launch, moves by keys, and asks what is under the pointer.
func (v *visit) trace() error {
	path, err := filepath.Abs("../internal/kineto/testdata/hta-alexnet-critical-path.json.gz")
	if err != nil {
		return err
	}
	if _, err := v.load(path); err != nil {
		return err
	}
	var trouble, at string
	err = v.do(chromedp.Evaluate(`(async () => {
		const c = `+canvas+`, later = ms => new Promise(r => setTimeout(r, ms)), key = k => c.dispatchEvent(new KeyboardEvent('keydown', {key: k, bubbles: true}));
		const until = async (what, f) => { for (let i = 0; i < 100; i++) { if (f()) return ''; await later(50); } return what; };
		const picture = document.querySelector('[data-picture]'), find = picture.querySelector('[data-find]');
		find.value = 'launchkernel';
		find.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
		let wrong = await until('nothing is found', () => /launchkernel/i.test(picture.querySelector('.chosen h3')?.textContent));
		if (wrong) return wrong;
		if (!/correlation/.test(picture.querySelector('.chosen').textContent)) return 'what the file tells of a launch is not shown';
		const launch = picture.querySelector('.chosen h3').textContent;
		key('f');
		if (wrong = await until('a launch does not lead to its kernel', () => /launched by/.test(picture.querySelector('.chosen').textContent) && picture.querySelector('.chosen h3').textContent !== launch)) return wrong;
		const from = +c.dataset.from, width = +c.dataset.to - from;
		key('ArrowRight');
		if (wrong = await until('an arrow does not move', () => +c.dataset.from > from)) return wrong;
		key('-');
		if (wrong = await until('minus does not zoom', () => +c.dataset.to - +c.dataset.from > width)) return wrong;
		key('Home');
		if (wrong = await until('Home does not show all', () => c.dataset.from === '0')) return wrong;
		const box = c.getBoundingClientRect();
		for (let y = 30; y < box.height; y += 18) for (let x = 200; x < box.width; x += 97) {
			c.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + x, clientY: box.top + y, bubbles: true}));
			await later(120);
			if (!picture.querySelector('.tip').hidden) return '';
		}
		return 'nothing is under the pointer anywhere';
	})()`, &trouble, awaited), chromedp.Evaluate(`location.pathname + location.search + location.hash`, &at))
	if err != nil {
		return err
	}
	if trouble != "" {
		v.c.Add("/explore/trace: %s", trouble)
	}
	for _, w := range windows {
		scheme := "light"
		if w.dark {
			scheme = "dark"
		}
		err := v.do(chromedp.EmulateViewport(w.width, w.height), chrome.Scheme(scheme), chromedp.Navigate(v.base+"/"), chromedp.Navigate(v.base+at),
			chrome.Until("the timeline", canvas+`?.dataset.ready === 'true' && document.querySelector('[data-widget=trace]').dataset.state === 'done'`), chromedp.Sleep(400*time.Millisecond))
		if err != nil {
			return err
		}
		if err := v.keepJudged("timeline-" + w.name); err != nil {
			return err
		}
	}
	return nil
}
