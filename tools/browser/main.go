// Command browser looks at the live view of a training as a person does, with Chromium, on a desktop's width and a phone's: it
// starts the training, waits for what the page must show, asks for a profile, ends the training, and leaves pictures. It fails
// when the console has an error, when something is fetched from elsewhere, when a page is wider than its window, or when the
// page does not outlive the training.
//
//	go run -C tools ./browser OUT WARPLINE [ARGUMENT...]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/warpline-ml/warpline/tools/chrome"
)

func main() { chrome.Main("browser OUT WARPLINE [ARGUMENT...]", 2, run) }

func run(ctx context.Context, out string, line []string) error {
	training, url, err := chrome.Begin(append(line, "--listen", "127.0.0.1:0", "--json"))
	if err != nil {
		return err
	}
	defer training.Process.Kill()
	for _, w := range windows {
		if err := look(ctx, url, out, w); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return outlive(ctx, url, out, training)
}

// window is a size to look through.
type window struct {
	name          string
	width, height int64
	options       []chromedp.EmulateViewportOption
	dark          bool
}

var windows = []window{
	{"desktop", 1280, 900, nil, false},
	{"phone", 390, 844, []chromedp.EmulateViewportOption{chromedp.EmulateMobile, chromedp.EmulateScale(2)}, true},
}

// colours tells whether a canvas shows more than its frame.
func colours(id string) string {
	return fmt.Sprintf(`(() => { const c = document.getElementById('%s'); if (!c.width || !c.height) return false;
		const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
		for (let i = 0; i < d.length; i += 4) if (d[i+3]) seen.add(d[i] >> 4 << 8 | d[i+1] >> 4 << 4 | d[i+2] >> 4);
		return seen.size > 2; })()`, id)
}

func look(ctx context.Context, url, out string, w window) error {
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	c := chrome.Listen(tab, url)
	var overflow int64
	var picture []byte
	scheme := "light"
	if w.dark {
		scheme = "dark"
	}
	err := chromedp.Run(tab, network.Enable(), cdplog.Enable(), chromedp.EmulateViewport(w.width, w.height, w.options...),
		chrome.Scheme(scheme), chromedp.Navigate(url),
		chrome.Until("steps", `/^\d+ of \d+$/.test(document.getElementById('step').textContent)`),
		chrome.Until("the curve of the loss", colours("losses")), chrome.Until("the rate", colours("rates")), chrome.Until("memory", colours("kinds")),
		chrome.Until("the timeline", colours("timeline")), chrome.Until("findings", `document.getElementById('findings').children.length > 0`),
		chromedp.Click("#nearer"), chromedp.Click("#later"), chrome.Until("the timeline, nearer", colours("timeline")),
		chromedp.SetValue("#steps", "2"), chromedp.Click("#record"),
		chrome.Until("the profile", `!document.getElementById('table').hidden && /calls/.test(document.getElementById('table').textContent)`),
		chrome.Until("the trace", `document.getElementById('trace').href.startsWith('blob:')`),
		chromedp.Sleep(time.Second),
		chromedp.Evaluate(`document.documentElement.scrollWidth - window.innerWidth`, &overflow),
		chromedp.FullScreenshot(&picture, 100))
	if err != nil {
		return errors.Join(err, c.Err())
	}
	if overflow > 0 {
		c.Add("the page is %d pixels wider than the window", overflow)
	}
	return errors.Join(c.Err(), os.WriteFile(filepath.Join(out, w.name+".png"), picture, 0o666))
}

// outlive ends the training and looks at what is left of its page.
func outlive(ctx context.Context, url, out string, training *exec.Cmd) error {
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	c := chrome.Listen(tab, url)
	var picture []byte
	err := chromedp.Run(tab, network.Enable(), cdplog.Enable(), chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url), chrome.Until("the curve of the loss", colours("losses")),
		chrome.Until("the profile, which the page reads while there is a program", `!document.getElementById('table').hidden`),
		chromedp.ActionFunc(func(context.Context) error { return training.Process.Signal(syscall.SIGINT) }),
		chrome.Until("word of the end", `!document.getElementById('banner').hidden && /interrupted/.test(document.getElementById('banner').textContent)`),
		chromedp.ActionFunc(func(context.Context) error { training.Wait(); return nil }),
		chromedp.Sleep(time.Second), chrome.Until("the curve after the end", colours("losses")),
		chromedp.Evaluate(`window.dispatchEvent(new Event('resize'))`, nil), chrome.Until("the curve, drawn again", colours("losses")),
		chromedp.FullScreenshot(&picture, 100))
	return errors.Join(err, c.Err(), os.WriteFile(filepath.Join(out, "ended.png"), picture, 0o666))
}
