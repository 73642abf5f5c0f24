// Command browser looks at the live view of a training as a person does, with Chromium, on a desktop's width and a phone's: it
// starts the training, waits for what the page must show, asks for a profile, ends the training, and leaves pictures. It fails
// when the console has an error, when something is fetched from elsewhere, when a page is wider than its window, or when the
// page does not outlive the training.
//
//	go run -C tools ./browser OUT WARPLINE [ARGUMENT...]
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("browser OUT WARPLINE [ARGUMENT...]")
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func run(out string, line []string) error {
	training, url, err := begin(append(line, "--listen", "127.0.0.1:0", "--json"))
	if err != nil {
		return err
	}
	defer training.Process.Kill()
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	ctx, cancel := browser()
	defer cancel()
	for _, w := range windows {
		if err := look(ctx, url, out, w); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return outlive(ctx, url, out, training)
}

// begin starts a training and returns where its page is.
func begin(line []string) (*exec.Cmd, string, error) {
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stderr = nil
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	first := bufio.NewReader(lines)
	text, err := first.ReadString('\n')
	if err != nil {
		return nil, "", fmt.Errorf("%s says nothing: %w", line[0], err)
	}
	go first.WriteTo(discard{})
	var told struct{ URL string }
	err = json.Unmarshal([]byte(text), &told)
	return cmd, told.URL, err
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// browser starts Chromium.
func browser() (context.Context, context.CancelFunc) {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU)
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			opts = append(opts, chromedp.ExecPath(path))
			break
		}
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel2 := chromedp.NewContext(ctx)
	ctx, cancel3 := context.WithTimeout(ctx, 8*time.Minute)
	return ctx, func() { cancel3(); cancel2(); cancel() }
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

// complaints are what must not be.
type complaints struct {
	sync.Mutex
	list []string
}

func (c *complaints) add(format string, args ...any) {
	c.Lock()
	defer c.Unlock()
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

func (c *complaints) err() error {
	c.Lock()
	defer c.Unlock()
	if len(c.list) == 0 {
		return nil
	}
	return errors.New(strings.Join(c.list, "\n"))
}

// listen collects what a tab complains of.
func listen(ctx context.Context, url string) *complaints {
	c := new(complaints)
	chromedp.ListenTarget(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *runtime.EventConsoleAPICalled:
			if ev.Type == runtime.APITypeError || ev.Type == runtime.APITypeWarning {
				c.add("console: %s %s", ev.Type, ev.Args[0].Value)
			}
		case *runtime.EventExceptionThrown:
			c.add("exception: %v", ev.ExceptionDetails)
		case *cdplog.EventEntryAdded:
			if ev.Entry.Level == cdplog.LevelError {
				c.add("log: %s %s", ev.Entry.Text, ev.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			if u := ev.Request.URL; !strings.HasPrefix(u, url) && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "blob:") {
				c.add("%s is fetched", u)
			}
		}
	})
	return c
}

// until waits for an expression to be true.
func until(what, expression string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // machines that test are busy
		defer cancel()
		if err := chromedp.Poll(expression, nil, chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(0)).Do(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
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
	c := listen(tab, url)
	var overflow int64
	var picture []byte
	scheme := "light"
	if w.dark {
		scheme = "dark"
	}
	err := chromedp.Run(tab, network.Enable(), cdplog.Enable(), chromedp.EmulateViewport(w.width, w.height, w.options...),
		emulateScheme(scheme), chromedp.Navigate(url),
		until("steps", `/^\d+ of \d+$/.test(document.getElementById('step').textContent)`),
		until("the curve of the loss", colours("losses")), until("the rate", colours("rates")), until("memory", colours("kinds")),
		until("the timeline", colours("timeline")), until("findings", `document.getElementById('findings').children.length > 0`),
		chromedp.Click("#nearer"), chromedp.Click("#later"), until("the timeline, nearer", colours("timeline")),
		chromedp.SetValue("#steps", "2"), chromedp.Click("#record"),
		until("the profile", `!document.getElementById('table').hidden && /calls/.test(document.getElementById('table').textContent)`),
		until("the trace", `document.getElementById('trace').href.startsWith('blob:')`),
		chromedp.Sleep(time.Second),
		chromedp.Evaluate(`document.documentElement.scrollWidth - window.innerWidth`, &overflow),
		chromedp.FullScreenshot(&picture, 100))
	if err != nil {
		return errors.Join(err, c.err())
	}
	if overflow > 0 {
		c.add("the page is %d pixels wider than the window", overflow)
	}
	return errors.Join(c.err(), os.WriteFile(filepath.Join(out, w.name+".png"), picture, 0o666))
}

// outlive ends the training and looks at what is left of its page.
func outlive(ctx context.Context, url, out string, training *exec.Cmd) error {
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	c := listen(tab, url)
	var picture []byte
	err := chromedp.Run(tab, network.Enable(), cdplog.Enable(), chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url), until("the curve of the loss", colours("losses")),
		until("the profile, which the page reads while there is a program", `!document.getElementById('table').hidden`),
		chromedp.ActionFunc(func(context.Context) error { return training.Process.Signal(syscall.SIGINT) }),
		until("word of the end", `!document.getElementById('banner').hidden && /interrupted/.test(document.getElementById('banner').textContent)`),
		chromedp.ActionFunc(func(context.Context) error { training.Wait(); return nil }),
		chromedp.Sleep(time.Second), until("the curve after the end", colours("losses")),
		chromedp.Evaluate(`window.dispatchEvent(new Event('resize'))`, nil), until("the curve, drawn again", colours("losses")),
		chromedp.FullScreenshot(&picture, 100))
	return errors.Join(err, c.err(), os.WriteFile(filepath.Join(out, "ended.png"), picture, 0o666))
}
