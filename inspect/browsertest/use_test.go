package browsertest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp/kb"
)

// TestPagesAreClickedThrough goes from the store to a block and to a version of a row with the
// mouse.
func TestPagesAreClickedThrough(t *testing.T) {
	t.Parallel()
	root, _ := serve(t)
	b := newTab(t)
	b.size(windows[1], "light", "no-preference")
	b.open(root + "/")
	for _, step := range []struct{ click, page string }{
		{`tbody th a[href$="table=orders"]`, "/table"},
		{`svg.layout a`, "/rowset"},
		{`main a[href*="/block?"]`, "/block"},
		{`.crumbs a[href*="/rowset?"]`, "/rowset"},
		{`.crumbs a[href^="/table?"]`, "/table"},
		{`.tabs a[href^="/rows?"]`, "/rows"},
		{`.choices a[rel=prev]`, "/rows"},
		{`.grid a`, "/row"},
		{`.versions a[href^="/row?"]`, "/row"},
		{`.steps h3 a`, "/rowset"},
		{`.crumbs a[href^="/table?"]`, "/table"},
		{`.tabs a[href^="/timeline?"]`, "/timeline"},
		{`#job a[rel=prev]`, "/timeline"},
		{`.jobs tbody tr:last-child a`, "/timeline"},
		{`.crumbs a`, "/"},
	} {
		before := eval[string](b, "location.href")
		b.click(step.click)
		if got := eval[string](b, "location.pathname"); got != step.page || before == eval[string](b, "location.href") {
			t.Fatalf("%s leads to %s, want %s", step.click, got, step.page)
		}
	}
}

// watch notes each element that gets the focus, and whether one sees it: as an outline, or for the
// link of a rowset in the picture, as a change of its box.
const watch = `{
	const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")].filter(e => e.checkVisibility());
	window.unseen = [];
	window.left = new Set(all);
	window.wanted = all.length;
	document.addEventListener("focusin", (event) => {
		const e = event.target, s = getComputedStyle(e);
		window.left.delete(e);
		if (!(s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2)) window.unseen.push(e.outerHTML.slice(0, 100));
		if (e.matches(".skip") && e.getBoundingClientRect().left < 0) window.unseen.push("the link to the content");
	});
}`

// TestEveryControlIsReachedByTab presses Tab as often as there are controls.
func TestEveryControlIsReachedByTab(t *testing.T) {
	t.Parallel()
	root, times := serve(t)
	b := newTab(t)
	b.size(windows[1], "light", "no-preference")
	for _, p := range b.pagesOf(root, "orders", times) {
		b.open(p[1])
		eval[*int](b, watch+"; null")
		b.keys(strings.Repeat(kb.Tab, eval[int](b, "window.wanted")))
		if left := eval[[]string](b, "[...window.left].map(e => e.outerHTML.slice(0, 100))"); len(left) > 0 {
			t.Errorf("%s: Tab does not reach %q", p[0], left)
		}
		if unseen := eval[[]string](b, "window.unseen"); len(unseen) > 0 {
			t.Errorf("%s: the focus is not seen on %q", p[0], unseen)
		}
	}
}

// TestSliderByKeys moves the slider of rows with the arrow keys, and compares what it shows with
// the page of that time.
func TestSliderByKeys(t *testing.T) {
	t.Parallel()
	root, _ := serve(t)
	b := newTab(t)
	b.open(root + "/rows?table=orders&limit=20")
	newest := eval[string](b, "state.dataset.at")
	eval[bool](b, "(slide.focus(), true)")
	b.keys(strings.Repeat(kb.ArrowLeft, 3) + kb.Home)
	first := eval[string](b, "state.dataset.first")
	b.until("document.getElementById('state').dataset.at === " + quote(first) +
		" && location.search.includes('at=" + first + "')")
	b.keys(kb.End + kb.ArrowLeft)
	b.until("!['" + newest + "', '" + first +
		"'].includes(document.getElementById('state').dataset.at) && !document.querySelector('[aria-busy]')")
	at := eval[string](b, "document.getElementById('state').dataset.at")
	shown := eval[string](b, "document.querySelector('#state').innerText + "+
		"document.querySelector('#status').innerText + document.querySelector('form[data-slider]').elements.at.value")
	if !strings.Contains(eval[string](b, "location.search"), "at="+at) || !strings.HasSuffix(shown, at) {
		t.Errorf("address %s, form %.100s, at %s", eval[string](b, "location.search"), shown, at)
	}
	b.open(eval[string](b, "location.href"))
	if want := eval[string](b, "document.querySelector('#state').innerText + "+
		"document.querySelector('#status').innerText + document.querySelector('form[data-slider]').elements.at.value"); want != shown {
		t.Errorf("the slider shows\n%s\nthe page itself\n%s", shown, want)
	}
	b.open(root + "/timeline?table=orders")
	job := eval[string](b, "document.querySelector('#job-title').innerText")
	b.keys(kb.ArrowLeft)
	b.until("document.readyState === 'complete' && document.querySelector('#job-title').innerText !== " + quote(job))
	b.keys(kb.ArrowRight)
	b.until("document.readyState === 'complete' && document.querySelector('#job-title').innerText === " + quote(job))
}

// quote returns a value in JSON, and so in JavaScript.
func quote(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

// content is the text of a page, without what changes from one moment to the next or works only
// with scripts.
const content = `(() => {
	const copy = document.querySelector("main").cloneNode(true);
	for (const e of copy.querySelectorAll("#slider, #marking, time, svg.chart, .figures, [aria-labelledby=counters], [aria-labelledby=activity]")) e.remove();
	return copy.textContent.replace(/\s+/g, " ").replace(/\d[\d.,]* ?(µs|ms|ns|s)\b/g, "");
})()`

// TestPagesWithoutScripts compares pages with and without scripts, and uses the form of times.
func TestPagesWithoutScripts(t *testing.T) {
	t.Parallel()
	root, times := serve(t)
	with, without := newTab(t), newTab(t)
	call(without, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	for _, p := range with.pagesOf(root, "orders", times) {
		if p[0] == "store" {
			continue // its figures are of the moment
		}
		with.open(p[1])
		without.open(p[1])
		if a, b := eval[string](with, content), eval[string](without, content); a != b || len(a) < 100 {
			t.Errorf("%s: with scripts\n%s\nwithout\n%s", p[0], a, b)
		}
	}
	without.open(root + "/rows?table=orders")
	if eval[bool](without, "slider.checkVisibility() || marking.checkVisibility()") {
		t.Error("the slider is shown, but does nothing")
	}
	eval[bool](without, "(document.querySelector('input[name=at]').focus(), true)")
	without.keys(fmt.Sprint(uint64(times.first)) + kb.Enter)
	without.until(fmt.Sprintf("location.search.includes('at=%d') && document.readyState === 'complete'",
		uint64(times.first)))
	if at := eval[string](without, "state.dataset.at"); at != fmt.Sprint(uint64(times.first)) {
		t.Errorf("the form shows the state at %s, want %d", at, uint64(times.first))
	}
	if q, err := url.ParseQuery(eval[string](without, "location.search.slice(1)")); err != nil ||
		q.Get("table") != "orders" {
		t.Errorf("the form leads to %v", q)
	}
}
