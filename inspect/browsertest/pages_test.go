package browsertest

import (
	"bytes"
	_ "embed"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"

	"github.com/oribi-db/oribi/inspect"
)

//go:embed audit.js
var audit string

// windows are the sizes in which pages are shown: of a phone, a tablet, and a large screen.
var windows = [][2]int64{{320, 900}, {1024, 900}, {2560, 900}}

// size gives the window a size, and asks for a color scheme and for less motion or not.
func (b *tab) size(window [2]int64, scheme, motion string) {
	b.Helper()
	call(b, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: window[0], Height: window[1], DeviceScaleFactor: 1})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion}}})
}

// shot takes a screenshot of the window.
func (b *tab) shot(name string) image.Image {
	b.Helper()
	fast := true
	data := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{OptimizeForSpeed: &fast}).Data
	if dir := os.Getenv("ORIBI_SCREENSHOTS"); dir != "" {
		must(b, os.WriteFile(filepath.Join(dir, name+".png"), data, 0o666))
	}
	picture, err := png.Decode(bytes.NewReader(data))
	must(b, err)
	return picture
}

// pagesOf returns the addresses of all kinds of pages of a table, by name, in the order of links
// that lead to them.
func (b *tab) pagesOf(root, table string, times stamps) (list [][2]string) {
	b.Helper()
	add := func(name, url string) { list = append(list, [2]string{name, url}) }
	query := "?table=" + url.QueryEscape(table)
	link := func(at, selector string) string {
		b.open(at)
		return eval[string](b, fmt.Sprintf("new URL((e => e.href.baseVal ?? e.href)(document.querySelector(%q)), "+
			"document.baseURI).href", selector))
	}
	rowset := link(root+"/table"+query, `main a[href*="/rowset?"]`)
	block := link(rowset, `main a[href*="/block?"]`)
	rows := fmt.Sprintf("%s/rows%s&at=%d&since=%d", root, query, uint64(times.last), uint64(times.first))
	row := link(root+"/rows"+query, `.grid a`)
	add("store", root+"/")
	add("table", root+"/table"+query)
	add("rowset", rowset)
	add("block", block)
	add("rows", root+"/rows"+query)
	add("rows-compared", rows)
	add("row", row)
	add("row-none", root+"/row"+query)
	add("timeline", root+"/timeline"+query)
	return list
}

// TestPagesLookRight opens each kind of page in windows of several sizes, light and dark.
func TestPagesLookRight(t *testing.T) {
	t.Parallel()
	root, times := serve(t)
	b := newTab(t)
	list := b.pagesOf(root, "orders", times)
	list = append(list, [2]string{"timeline-all", root + "/timeline"})
	for _, p := range b.pagesOf(root, hostile, times) {
		if p[0] != "store" {
			list = append(list, [2]string{"hostile-" + p[0], p[1]})
		}
	}
	for _, p := range list {
		t.Run(p[0], func(t *testing.T) { b.lookAt(t, p[0], p[1]) })
	}
}

func (b *tab) lookAt(t *testing.T, name, address string) {
	b.open(address)
	for i, window := range windows {
		for _, scheme := range []string{"light", "dark"} {
			b.size(window, scheme, []string{"reduce", "no-preference"}[i%2])
			for _, text := range eval[[]string](b, audit) {
				t.Errorf("%d px, %s: %s", window[0], scheme, text)
			}
			b.checkShot(t, fmt.Sprintf("%s-%d-%s", name, window[0], scheme), scheme == "dark")
		}
	}
	if eval[bool](b, "'hacked' in window") {
		t.Error("a script of the store has run")
	}
}

// checkShot checks that a screenshot shows a page: its ground is light or dark as it should be,
// text and lines are on it from its top to its bottom, and pictures have several colors.
func (b *tab) checkShot(t *testing.T, name string, dark bool) {
	picture := b.shot(name)
	size := picture.Bounds().Max
	if r, g, bl, _ := picture.At(0, size.Y-1).RGBA(); (r+g+bl)/3 > 0x7fff == dark {
		t.Errorf("%s: the ground is %04x %04x %04x", name, r, g, bl)
	}
	height := min(size.Y, int(eval[float64](b, "document.body.getBoundingClientRect().height")))
	for top := 0; top+300 <= height; top += 300 {
		if n := colors(picture, image.Rect(0, top, size.X, top+300)); n < 8 {
			t.Errorf("%s: %d colors from %d px on", name, n, top)
		}
	}
	for _, box := range eval[[][4]float64](b, `[...document.querySelectorAll("svg.layout, svg.ticks, svg.bar, svg.chart")].filter(e => e.checkVisibility()).map(e => {
		const b = e.getBoundingClientRect(), c = e.closest(".scroll"), d = c ? c.getBoundingClientRect() : b;
		return [Math.max(b.left, d.left), b.top, Math.min(b.right, d.right, innerWidth), b.bottom] })`) {
		area := image.Rect(int(box[0]), int(box[1]), int(box[2]), int(box[3]))
		if area.In(picture.Bounds()) && area.Dx() > 20 && area.Dy() > 8 && colors(picture, area) < 2 {
			t.Errorf("%s: the picture at %v is empty", name, area)
		}
	}
}

// colors counts different colors, up to 64.
func colors(picture image.Image, area image.Rectangle) int {
	seen := map[[3]uint8]bool{}
	p, ok := picture.(*image.RGBA)
	at := func(x, y int) [3]uint8 {
		if ok {
			i := p.PixOffset(x, y)
			return [3]uint8(p.Pix[i : i+3])
		}
		r, g, b, _ := picture.At(x, y).RGBA()
		return [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}
	}
	var last [3]uint8
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			c := at(x, y)
			if c == last { // most pixels are like the one before them
				continue
			}
			last = c
			if seen[c] = true; len(seen) >= 64 {
				return len(seen)
			}
		}
	}
	return len(seen)
}

// TestEveryLinkLeadsToAPage requests what the pages of a table link to.
func TestEveryLinkLeadsToAPage(t *testing.T) {
	t.Parallel()
	root, times := serve(t)
	b := newTab(t)
	seen := map[string]bool{}
	for _, table := range []string{"orders", hostile} {
		for _, p := range b.pagesOf(root, table, times) {
			b.open(p[1])
			for _, link := range eval[[]string](b,
				"[...document.querySelectorAll('[href]')].map(e => e.href.baseVal ? new URL(e.href.baseVal, "+
					"document.baseURI).href : e.href)") {
				link, _, _ = strings.Cut(link, "#")
				if seen[link] {
					continue
				}
				seen[link] = true
				if !strings.HasPrefix(link, root+"/") {
					t.Errorf("%s links to %q", p[0], link)
				} else if r := get(t, link); r.StatusCode != http.StatusOK {
					t.Errorf("%s: %s: %s", p[0], link, r.Status)
				}
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d links", len(seen))
	}
}

// TestProblemsLookRight opens pages that are not there. The console says so too.
func TestProblemsLookRight(t *testing.T) {
	t.Parallel()
	root, _ := serve(t, inspect.Token("secret"))
	b := newTab(t)
	b.quiet = true
	b.lookAt(t, "no-token", root+"/")
	b.open(root + "/?token=secret")
	for name, path := range map[string]string{"not-found": "/nowhere", "bad-time": "/rows?table=orders&at=yesterday",
		"bad-where": "/rows?table=orders&where=%3Cscript%3E"} {
		b.lookAt(t, name, root+path)
	}
}
