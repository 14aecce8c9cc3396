// Package layoutsvg draws the rowsets of a table as SVG.
//
// Each rowset is a box. Its horizontal extent is its span: what share of the table's data is below
// and up to its keys. Boxes that have a key in common are stacked, so the height of the picture
// over a key is the number of rowsets that a read of the key looks into. Hatched and dotted parts
// of a box are the shares of redo and undo files in its bytes, and thick frames mark a choice of a
// policy, so that the picture is readable in print and without color.
//
// The output is one file without references, depends on its input only, and is well-formed for any
// keys and names. Drawing takes time O(n × height) in the number of rowsets.
package layoutsvg

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/celltext"
)

// Options are what a picture shows besides the layout.
type Options struct {
	Key    func(key []byte) string // text of an encoded key; nil prints hex
	Policy string                  // name of the policy that chose Pick
	Pick   compaction.Choice       // rowsets to mark
}

// Size of the picture, in pixels.
const (
	width      = 1200
	left       = 56 // of the plot
	right      = 24
	top        = 112
	bottom     = 84
	plotWidth  = width - left - right
	plotHeight = 640 // shared by the lanes, unless that makes them too high or too low
	mostLane   = 28  // height of a lane
	leastLane  = 1.5
	mostHeight = 12000 // of the plot, even if that makes lanes lower than leastLane
	leastWidth = 1.2   // of a box
	digitWidth = 7.2   // of a label
)

// Write draws a layout.
func Write(out io.Writer, l compaction.Layout, o Options) error {
	if o.Key == nil {
		o.Key = func(key []byte) string { return fmt.Sprintf("0x%x", key) }
	}
	p := newPicture(l, o)
	p.head()
	p.legend()
	p.boxes()
	p.axes()
	p.print("</svg>\n")
	_, err := out.Write(p.text.Bytes())
	return err
}

// picture is one that is drawn.
type picture struct {
	layout  compaction.Layout
	options Options
	spans   []compaction.Span
	lanes   []int   // of each rowset, from 0; -1: not drawn
	count   int     // of lanes
	box     float64 // height of a lane
	height  float64 // of the plot
	picked  map[uint64]bool
	text    bytes.Buffer
}

func newPicture(l compaction.Layout, o Options) *picture {
	p := &picture{layout: l, options: o, spans: compaction.Spans(l), picked: map[uint64]bool{}}
	for _, id := range o.Pick.RowSets {
		p.picked[id] = true
	}
	p.stack()
	n := float64(max(p.count, 1))
	p.box = max(min(mostLane, plotHeight/n), min(leastLane, mostHeight/n))
	p.height = p.box * n
	return p
}

// stack gives each rowset the lowest lane whose last rowset ends before it.
func (p *picture) stack() {
	sets := p.layout.RowSets
	order := make([]int, len(sets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(sets[a].MinKey, sets[b].MinKey) })
	p.lanes = make([]int, len(sets))
	var ends [][]byte // last key of each lane
	for _, i := range order {
		if p.lanes[i] = -1; bytes.Compare(sets[i].MinKey, sets[i].MaxKey) > 0 {
			continue
		}
		lane := 0
		for lane < len(ends) && bytes.Compare(ends[lane], sets[i].MinKey) >= 0 {
			lane++
		}
		if lane == len(ends) {
			ends = append(ends, nil)
		}
		ends[lane], p.lanes[i] = sets[i].MaxKey, lane
	}
	p.count = len(ends)
}

func (p *picture) print(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

// number formats a coordinate.
func number(x float64) string {
	return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64)
}

// escaped returns text for an element, with characters that are not printable in escaped form.
func escaped(text string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(celltext.Printable(text)))
	return b.String()
}

// cut returns the beginning of a text that is longer than n characters.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

const style = `<style>
text{font:13px "DejaVu Sans",Verdana,Arial,sans-serif;fill:#000}
.title{font-size:20px;font-weight:bold}
.small{font-size:11px}
.base{fill:#dde6f0;stroke:#5b6b7d;stroke-width:.6}
.redo{fill:url(#redo)}
.undo{fill:url(#undo)}
.pick{fill:none;stroke:#000;stroke-width:2.4}
.mark{fill:#000}
.line{stroke:#000;stroke-width:1}
.grid{stroke:#bbb;stroke-width:.5;stroke-dasharray:2 3}
</style>
<defs>
<pattern id="redo" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" fill="#f28e2b"/><rect width="1.6" height="5" fill="#5a2d00"/></pattern>
<pattern id="undo" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="#4e3d8f"/><circle cx="2.5" cy="2.5" r="1.1" fill="#fff"/></pattern>
</defs>
`

// head begins the file with its title.
func (p *picture) head() {
	total := float64(top) + p.height + bottom
	p.print(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %s" width="%d" height="%s" role="img">`+"\n", width, number(total), width, number(total))
	name := escaped(p.layout.Table)
	p.print("<title>Layout of table %s</title>\n%s", name, style)
	p.print(`<rect width="%d" height="%s" fill="#fff"/>`+"\n", width, number(total))
	p.print(`<text class="title" x="%d" y="34">Table %s</text>`+"\n", left, escaped(cut(p.layout.Table, 80)))
	stored, depth := 0.0, 0.0
	for i := range p.spans {
		stored += float64(p.layout.RowSets[i].Bytes)
		depth += p.spans[i].Width()
	}
	p.print(`<text x="%d" y="56">%s, %s, height at most %d, depth (average height) %.2f</text>`+"\n",
		left, plural(len(p.spans), "rowset"), size(stored), p.count, depth)
	switch pick := p.options.Pick; {
	case len(pick.RowSets) > 0:
		p.print(`<text x="%d" y="76">Next pick of %s: %s (%s)</text>`+"\n", left, escaped(p.options.Policy), plural(len(pick.RowSets), "rowset"), escaped(cut(pick.Why, 100)))
	case p.options.Policy != "":
		p.print(`<text x="%d" y="76">Next pick of %s: none</text>`+"\n", left, escaped(p.options.Policy))
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// size formats a number of bytes.
func size(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; n >= 1023.95 && i < len(units)-1; i++ {
		n /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}

// legend explains fills and frames.
func (p *picture) legend() {
	x := left
	for _, item := range []struct {
		class, text string
		width       int
	}{
		{"base", "base data of a rowset", 190},
		{"redo", "share of redo files", 180},
		{"undo", "share of undo files", 180},
		{"pick", "in the next pick (▲ below the axis)", 260},
	} {
		if item.class == "pick" && len(p.picked) == 0 {
			continue
		}
		p.print(`<rect class="%s" x="%d" y="88" width="22" height="13"/><text x="%d" y="99">%s</text>`+"\n", item.class, x, x+28, item.text)
		x += item.width
	}
}

// boxes draws the rowsets, and then the frames of those picked, which nothing may cover.
func (p *picture) boxes() {
	var frames bytes.Buffer
	for i := range p.layout.RowSets {
		r := &p.layout.RowSets[i]
		if p.lanes[i] < 0 {
			continue
		}
		w := max(leastWidth, p.spans[i].Width()*plotWidth)
		x := min(left+p.spans[i].From*plotWidth, left+plotWidth-w)
		y := top + p.height - float64(p.lanes[i]+1)*p.box
		h := p.box * 0.94
		p.print(`<g><title>%s</title>`, escaped(p.describe(i)))
		p.rect("base", x, y, w, h)
		redo, undo := share(r.RedoBytes, r.Bytes, h), share(r.UndoBytes, r.Bytes, h)
		if redo > 0 {
			p.rect("redo", x, y, w, redo)
		}
		if undo > 0 {
			p.rect("undo", x, y+h-undo, w, undo)
		}
		label := strconv.FormatUint(r.ID, 10)
		if h >= 13 && w >= digitWidth*float64(len(label))+8 {
			p.print(`<text class="small" x="%s" y="%s" text-anchor="middle" stroke="#fff" stroke-width="3" paint-order="stroke">%s</text>`, number(x+w/2), number(y+h/2+4), label)
		}
		p.print("</g>\n")
		if p.picked[r.ID] {
			fmt.Fprintf(&frames, `<rect class="pick" x="%s" y="%s" width="%s" height="%s"/>`, number(x), number(y), number(w), number(h))
			base, middle := top+p.height+4, x+w/2
			fmt.Fprintf(&frames, `<path class="mark" d="M%s %sl-4 8h8z"/>`+"\n", number(middle), number(base))
		}
	}
	p.text.Write(frames.Bytes())
}

func (p *picture) rect(class string, x, y, w, h float64) {
	p.print(`<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, number(x), number(y), number(w), number(h))
}

// share returns the height of a part of a box: at least one that can be seen, at most half.
func share(part, of int64, height float64) float64 {
	if part <= 0 || of <= 0 {
		return 0
	}
	return min(max(float64(part)/float64(of)*height, height/8), height/2)
}

// describe returns what a viewer shows when the pointer is on a rowset.
func (p *picture) describe(i int) string {
	r := &p.layout.RowSets[i]
	text := fmt.Sprintf("rowset %d: %s, %d rows, %d live; %s to %s", r.ID, size(float64(r.Bytes)), r.Rows, r.LiveRows,
		cut(p.options.Key(r.MinKey), 60), cut(p.options.Key(r.MaxKey), 60))
	if r.RedoBytes > 0 {
		text += "; redo files " + size(float64(r.RedoBytes))
	}
	if r.UndoBytes > 0 {
		text += "; undo files " + size(float64(r.UndoBytes))
	}
	return text
}

// axes draws the shares of data with the first and last key, and the heights.
func (p *picture) axes() {
	base := top + p.height
	p.print(`<path class="line" d="M%d %sH%d"/>`+"\n", left, number(base), left+plotWidth)
	for percent := 0; percent <= 100; percent += 10 {
		x := left + plotWidth*float64(percent)/100
		p.print(`<path class="line" d="M%s %sv5"/><text class="small" x="%s" y="%s" text-anchor="middle">%d %%</text>`+"\n", number(x), number(base), number(x), number(base+26), percent)
	}
	step := 1
	for scale := 1; float64(step)*p.box < 22; scale *= 10 {
		for _, f := range []int{1, 2, 5} {
			if step = f * scale; float64(step)*p.box >= 22 {
				break
			}
		}
	}
	for n := step; n <= p.count; n += step {
		y := base - float64(n)*p.box
		p.print(`<path class="grid" d="M%d %sH%d"/><text class="small" x="%d" y="%s" text-anchor="end">%d</text>`+"\n", left, number(y), left+plotWidth, left-6, number(y+4), n)
	}
	p.print(`<text class="small" transform="translate(14 %s) rotate(-90)" text-anchor="middle">height</text>`+"\n", number(top+p.height/2))
	p.print(`<text x="%d" y="%s" text-anchor="middle">share of the data, by key</text>`+"\n", left+plotWidth/2, number(base+46))
	first, last := p.bounds()
	if first >= 0 {
		p.print(`<text class="small" x="%d" y="%s">first key %s</text>`+"\n", left, number(base+66), escaped(cut(p.options.Key(p.layout.RowSets[first].MinKey), 70)))
		p.print(`<text class="small" x="%d" y="%s" text-anchor="end">last key %s</text>`+"\n", left+plotWidth, number(base+66), escaped(cut(p.options.Key(p.layout.RowSets[last].MaxKey), 70)))
	}
}

// bounds returns the rowsets with the first and the last key of the table; -1 without any.
func (p *picture) bounds() (first, last int) {
	first, last = -1, -1
	for i := range p.layout.RowSets {
		if p.lanes[i] < 0 {
			continue
		}
		if first < 0 || bytes.Compare(p.layout.RowSets[i].MinKey, p.layout.RowSets[first].MinKey) < 0 {
			first = i
		}
		if last < 0 || bytes.Compare(p.layout.RowSets[i].MaxKey, p.layout.RowSets[last].MaxKey) > 0 {
			last = i
		}
	}
	return first, last
}
