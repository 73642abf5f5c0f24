package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/warpline-ml/warpline/tools/chrome"
)

// ready is whether a page without widgets can be used.
const ready = `document.readyState === 'complete'`

// learn looks at all lessons, checks and exercises, and does what a learner does in each of them.
func (v *visit) learn() error {
	for _, list := range []string{"/learn/", "/exercise/"} {
		var pages []string
		err := v.do(chromedp.Navigate(v.base+list), chrome.Until("the page", ready),
			chromedp.Evaluate(`[...document.querySelectorAll('main a[href]')].map(a => a.getAttribute('href')).filter(p => p.startsWith('/'))`, &pages))
		if err != nil {
			return err
		}
		for i, page := range append([]string{list}, pages...) {
			if err := v.look(page, windows[i%len(windows)], true); err != nil {
				return fmt.Errorf("%s: %w", page, err)
			}
			if err := v.use(page); err != nil {
				return fmt.Errorf("%s: %w", page, err)
			}
		}
	}
	return nil
}

// use opens a line's explanation, runs the cells, takes the check and solves the puzzle of the page that is shown.
func (v *visit) use(page string) error {
	var trouble string
	if err := v.do(chromedp.Evaluate(`(() => {
		for (const b of document.querySelectorAll('[data-listing] [data-line]')) {
			const why = document.getElementById(b.getAttribute('aria-controls'));
			b.click();
			if (why.hidden || b.getAttribute('aria-expanded') !== 'true' || why.textContent.length < 10) return b.textContent + ' explains nothing';
			b.click();
			if (!why.hidden) return b.textContent + ' does not close';
		}
		return '';
	})()`, &trouble)); err != nil {
		return err
	}
	if trouble != "" {
		v.c.Add("%s: %s", page, trouble)
	}
	var cells []string
	if err := v.do(chromedp.Evaluate(`[...document.querySelectorAll('[data-cell]')].map(c => c.dataset.cell)`, &cells)); err != nil {
		return err
	}
	for _, c := range cells {
		if err := v.cell(page, c); err != nil {
			return fmt.Errorf("cell %s: %w", c, err)
		}
	}
	switch {
	case strings.HasPrefix(page, "/quiz/"):
		return v.quiz(page)
	case strings.HasPrefix(page, "/exercise/kernel-"):
		return v.puzzle(page)
	}
	return nil
}

// cell runs a program on the page, and compares its output with the command's.
func (v *visit) cell(page, id string) error {
	at := fmt.Sprintf(`document.querySelector('[data-cell="%s"]')`, id)
	var shown struct{ Log, Exit string }
	err := v.do(chromedp.Evaluate(at+`.querySelector('[data-action=run]').click()`, nil), chromedp.Sleep(20*time.Millisecond),
		chrome.Until("the end of "+id, at+`.querySelector('[data-exit]').dataset.exit !== '' && !`+at+`.querySelector('[data-action=run]').disabled`),
		chromedp.Evaluate(`({Log: `+at+`.querySelector('[role=log]').textContent, Exit: `+at+`.querySelector('[data-exit]').dataset.exit})`, &shown))
	if err != nil {
		return err
	}
	want, err := v.command("learn", "run", id)
	if err != nil {
		return err
	}
	if shown.Log != want.out || shown.Exit != "0" || want.status != 0 {
		v.c.Add("%s: cell %s shows %q with status %s, the command %q with %d", page, id, shown.Log, shown.Exit, want.out, want.status)
	}
	return nil
}

// quiz takes a check with the first choice of every question, which is not enough, and follows a wrong answer to its passage.
func (v *visit) quiz(page string) error {
	var trouble string
	err := v.do(chromedp.Evaluate(`(async () => {
		const form = document.querySelector('form[data-quiz]'), check = form.querySelector('[data-action=check]');
		const questions = [...form.querySelectorAll('fieldset[data-question]')];
		for (const q of questions) {
			if (!check.disabled) return 'it can be checked before all are answered';
			q.querySelector('input').click();
		}
		if (check.disabled) return 'it cannot be checked';
		check.click();
		const score = form.querySelector('[data-value=score]');
		for (let i = 0; i < 100 && !score.dataset.raw; i++) await new Promise(r => setTimeout(r, 50));
		if (!(Number(score.dataset.raw) < 0.75) || form.hasAttribute('data-complete')) return 'first choices are worth ' + score.dataset.raw;
		const links = form.querySelectorAll('a[data-passage]');
		if (links.length === 0) return 'no wrong answer leads to its passage';
		for (const a of links) {
			const r = await fetch(a.href), text = await r.text();
			if (!r.ok || !text.includes('id="' + a.hash.slice(1) + '"')) return a.href + ' is not there';
		}
		return '';
	})()`, &trouble, awaited))
	if trouble != "" {
		v.c.Add("%s: %s", page, trouble)
	}
	return err
}

// puzzle checks what a puzzle begins with, which fails with a hint.
func (v *visit) puzzle(page string) error {
	var told string
	err := v.do(chromedp.Evaluate(`document.querySelector('form[data-puzzle] [data-action=check]').click()`, nil),
		chrome.Until("the judgement", `'raw' in document.querySelector('[data-value=pass]').dataset`),
		chromedp.Evaluate(`document.querySelector('[data-value=pass]').textContent`, &told))
	if !strings.HasPrefix(told, "hint: ") {
		v.c.Add("%s: what it begins with is told %q", page, told)
	}
	return err
}
