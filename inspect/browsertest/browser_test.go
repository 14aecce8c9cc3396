package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/oribi-db/oribi/inspect"
)

var chromium context.Context // nil: there is none

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	name := os.Getenv("ORIBI_CHROMIUM")
	for _, known := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(known); name == "" && err == nil {
			name = path
		}
	}
	if name == "" {
		return m.Run()
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(name), chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"), // names that an attacker rebinds
		chromedp.Flag("disable-popup-blocking", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("disable-background-networking", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	ctx, cancel := chromedp.NewContext(allocator)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s does not start: %v\n", name, err)
		return 1
	}
	chromium = ctx
	return m.Run()
}

// tab is a tab of the browser, with cookies of its own.
type tab struct {
	testing.TB
	ctx context.Context

	mu    sync.Mutex
	said  []string // errors and warnings that it has shown in its console
	quiet bool     // they are expected
}

// newTab opens a tab, which is closed when the test ends.
func newTab(t testing.TB) *tab {
	t.Helper()
	if chromium == nil {
		t.Skip("no Chromium: install it, or set ORIBI_CHROMIUM to its path")
	}
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{TB: t, ctx: ctx}
	must(t, chromedp.Do(ctx))
	must(t, chromedp.Listen(ctx, b.hear))
	call(b, log.Enable, cdp.Empty{})
	// several tabs are in use
	call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	t.Cleanup(b.checkConsole)
	return b
}

// hear notes what the console shows, of which violations of the policy are a part.
func (b *tab) hear(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.URL)
	case *runtime.EventConsoleAPICalled:
		text = fmt.Sprintf("console.%s", e.Type)
	case *log.EventEntryAdded:
		text = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, text)
}

func (b *tab) checkConsole() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.said {
		if !b.quiet {
			b.Errorf("the console says: %s", text)
		}
	}
}

// limited returns a context for one action, so that a page that hangs fails.
func (b *tab) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, 30*time.Second)
}

func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// open opens a page and waits until it is loaded.
func (b *tab) open(url string) {
	b.Helper()
	b.do(chromedp.Navigate(url))
}

// eval evaluates an expression, and waits for it if it is a promise.
func eval[T any](b *tab, script string) T {
	b.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	result, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%.200s: %v", script, err)
	}
	return result
}

// until waits until an expression is true, also across pages.
func (b *tab) until(script string) {
	b.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+script+")"))
		if err == nil && ok {
			return
		}
		select {
		case <-ctx.Done():
			b.Fatalf("it does not become true: %s (%v)", script, err)
		case <-tick.C:
		}
	}
}

// keys presses keys, one after the other.
func (b *tab) keys(keys string) {
	b.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// click clicks an element with the mouse and waits for the page that it leads to.
func (b *tab) click(selector string) {
	b.Helper()
	eval[bool](b, "window.left = true")
	b.do(chromedp.Click(chromedp.CSS(selector)))
	b.until("!window.left && document.readyState === 'complete'")
}

// serve serves the pages of a new store and returns their address.
func serve(t testing.TB, options ...inspect.Option) (url string, times stamps) {
	t.Helper()
	store, events, times := openStore(t)
	server := httptest.NewServer(inspect.Handler(store, append(options, inspect.Log(events), inspect.Name("shop"))...))
	t.Cleanup(server.Close)
	return server.URL, times
}

// get requests an address without the browser.
func get(t testing.TB, url string) *http.Response {
	t.Helper()
	r, err := http.Get(url)
	must(t, err)
	r.Body.Close()
	return r
}
