// Package layoutsvg draws the rowsets of a table as SVG.
//
// Each rowset is a box. Its horizontal extent is its span: what share of the table's data is below
// and up to its keys. Boxes that have a key in common are stacked, so the height of the picture
// over a key is the number of rowsets that a read of the key looks into. Hatched and dotted parts
// of a box are the shares of redo and undo files in its bytes, and thick frames mark a choice of a
// policy, so that the picture is readable in print and without color.
//
// Write makes one file without references, Embed an element for a page. Both depend on their input
// only and are well-formed for any keys and names. Drawing takes time O(n log n) in the number of
// rowsets.
package layoutsvg

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/celltext"
)

// Options are what a picture shows besides the layout.
type Options struct {
	Key    func(key []byte) string // text of an encoded key; nil prints hex
	Policy string                  // name of the policy that chose Pick
	Pick   compaction.Choice       // rowsets to mark
	// Marked names the marked rowsets in texts. If it is empty, they are "in the next pick".
	Marked string
	Link   func(id uint64) string // of Embed: address of a rowset's page; nil, or an empty result, for no link
	Suffix string                 // of Embed: of the ids of its patterns; it differs between the pictures of a page
	// Apart is the number of rowsets up to which Embed gives each a title and a link. The default,
	// and the maximum, is 1,000.
	Apart int
}

// Size of the picture, in pixels.
const (
	width      = 1200
	left       = 56 // of the plot
	right      = 24
	top        = 112 // of the plot, below title and legend
	legendTop  = 88
	embedTop   = top - legendTop + 2 // without a title
	bottom     = 84
	plotWidth  = width - left - right
	plotHeight = 640 // shared by the lanes, unless that makes them too high or too low
	mostLane   = 28  // height of a lane
	leastLane  = 1.5
	mostHeight = 12000 // of the plot, even if that makes lanes lower than leastLane
	pageHeight = 1600  // likewise, of a picture in a page
	leastWidth = 1.2   // of a box
	digitWidth = 7.2   // of a label
)

// mostApart is the number of rowsets up to which Embed draws each as an element of its own, with a
// title and a link. The boxes of more are the parts of one path, so that a page of them is small.
const mostApart = 1000

// Write draws a layout as a file.
func Write(out io.Writer, l compaction.Layout, o Options) error {
	p := newPicture(l, o, top, mostHeight)
	p.head()
	p.draw()
	_, err := out.Write(p.text.Bytes())
	return err
}

// Embed draws a layout as an svg element of class "layout" for an HTML page, which gives its
// classes a style: base, redo, undo, pick, mark, line, grid, small. It has no title text.
func Embed(out io.Writer, l compaction.Layout, o Options) error {
	p := newPicture(l, o, embedTop, pageHeight)
	apart := mostApart
	if o.Apart > 0 {
		apart = min(apart, o.Apart)
	}
	p.embedded, p.joined = true, len(l.RowSets) > apart
	total := p.top + p.height + bottom
	p.print(`<svg class="layout" viewBox="0 0 %d %s" role="img" aria-label="Rowsets of table %s by key">`+
		"\n%s", width, number(total), escaped(cut(l.Table, 80)),
		strings.NewReplacer(`id="redo"`, `id="redo`+o.Suffix+`"`, `id="undo"`,
			`id="undo`+o.Suffix+`"`).Replace(patterns))
	p.draw()
	_, err := out.Write(p.text.Bytes())
	return err
}

// draw draws everything below the title, and ends the picture.
func (p *picture) draw() {
	p.legend()
	if p.joined {
		p.joinedBoxes()
	} else {
		p.boxes()
	}
	p.axes()
	p.print("</svg>\n")
}

// picture is a picture while it is drawn.
type picture struct {
	layout  compaction.Layout
	options Options
	spans   []compaction.Span
	lanes   []int   // of each rowset, from 0; -1: not drawn
	count   int     // of lanes
	box     float64 // height of a lane
	top     float64 // of the plot
	height  float64 // of the plot
	picked  map[uint64]bool
	text    bytes.Buffer

	embedded bool
	joined   bool // boxes are parts of one path
}

func newPicture(l compaction.Layout, o Options, top, most float64) *picture {
	if o.Key == nil {
		o.Key = func(key []byte) string { return fmt.Sprintf("0x%x", key) }
	}
	p := &picture{layout: l, options: o, spans: compaction.Spans(l), picked: map[uint64]bool{}, top: top}
	for _, id := range o.Pick.RowSets {
		p.picked[id] = true
	}
	p.stack()
	n := float64(max(p.count, 1))
	p.box = max(min(mostLane, plotHeight/n), min(leastLane, most/n))
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
	lanes := newLaneTree(len(sets))
	for _, i := range order {
		if p.lanes[i] = -1; bytes.Compare(sets[i].MinKey, sets[i].MaxKey) > 0 {
			continue
		}
		lane := lanes.lowest(sets[i].MinKey)
		lanes.set(lane, sets[i].MaxKey)
		p.lanes[i], p.count = lane, max(p.count, lane+1)
	}
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
` + patterns

// patterns are the fills of redos and undos.
const patterns = `<defs>
<pattern id="redo" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
	`<rect width="5" height="5" fill="#f28e2b"/><rect width="1.6" height="5" fill="#5a2d00"/></pattern>
<pattern id="undo" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="#4e3d8f"/>` +
	`<circle cx="2.5" cy="2.5" r="1.1" fill="#fff"/></pattern>
</defs>
`

// head begins the file with its title.
func (p *picture) head() {
	total := p.top + p.height + bottom
	p.print(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %s" width="%d" height="%s" role="img">`+
		"\n", width, number(total), width, number(total))
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
		p.print(`<text x="%d" y="76">Next pick of %s: %s (%s)</text>`+"\n", left, escaped(p.options.Policy),
			plural(len(pick.RowSets), "rowset"), escaped(cut(pick.Why, 100)))
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
	x, marked := left, cmp.Or(p.options.Marked, "in the next pick")
	for _, item := range []struct {
		class, text string
		width       int
	}{
		{"base", "base data of a rowset", 190},
		{"redo", "share of redo files", 180},
		{"undo", "share of undo files", 180},
		{"pick", marked + " (▲ below the axis)", 260},
	} {
		if item.class == "pick" && len(p.picked) == 0 {
			continue
		}
		y := p.top - (top - legendTop)
		p.rect(item.class, float64(x), y, 22, 13)
		p.print(`<text x="%d" y="%s">%s</text>`+"\n", x+28, number(y+11), item.text)
		x += item.width
	}
}

// place is where the box of a rowset is, and how high the parts of its redos and undos are.
type place struct{ x, y, w, h, redo, undo float64 }

func (p *picture) place(i int) (b place) {
	r := &p.layout.RowSets[i]
	b.w = max(leastWidth, p.spans[i].Width()*plotWidth)
	b.x = min(left+p.spans[i].From*plotWidth, left+plotWidth-b.w)
	b.y = p.top + p.height - float64(p.lanes[i]+1)*p.box
	b.h = p.box * 0.94
	b.redo, b.undo = share(r.RedoBytes, r.Bytes, b.h), share(r.UndoBytes, r.Bytes, b.h)
	return b
}

// boxes draws the rowsets, and then the frames of those picked, which nothing may cover.
func (p *picture) boxes() {
	var frames bytes.Buffer
	for i := range p.layout.RowSets {
		r := &p.layout.RowSets[i]
		if p.lanes[i] < 0 {
			continue
		}
		b := p.place(i)
		begin, end := "<g>", "</g>\n"
		if p.embedded && p.options.Link != nil {
			if address := p.options.Link(r.ID); address != "" {
				begin, end = `<a href="`+escaped(address)+`">`, "</a>\n"
			}
		}
		p.print("%s", begin)
		p.print(`<title>%s</title>`, escaped(p.describe(i)))
		p.rect("base", b.x, b.y, b.w, b.h)
		if b.redo > 0 {
			p.rect("redo", b.x, b.y, b.w, b.redo)
		}
		if b.undo > 0 {
			p.rect("undo", b.x, b.y+b.h-b.undo, b.w, b.undo)
		}
		label := strconv.FormatUint(r.ID, 10)
		if b.h >= 13 && b.w >= digitWidth*float64(len(label))+8 {
			p.print(`<text class="small" x="%s" y="%s" text-anchor="middle" `+
				`stroke="#fff" stroke-width="3" paint-order="stroke">%s</text>`,
				number(b.x+b.w/2), number(b.y+b.h/2+4), label)
		}
		p.print("%s", end)
		if p.picked[r.ID] {
			fmt.Fprintf(&frames, `<rect class="pick" x="%s" y="%s" width="%s" height="%s"/>`, number(b.x),
				number(b.y), number(b.w), number(b.h))
			fmt.Fprintf(&frames, `<path class="mark" d="%s"/>`+"\n", p.mark(b))
		}
	}
	p.text.Write(frames.Bytes())
}

// mark returns the path of the sign below the axis that marks a box.
func (p *picture) mark(b place) string {
	return fmt.Sprintf("M%s %sl-4 8h8z", number(b.x+b.w/2), number(p.top+p.height+4))
}

// joinedBoxes draws what boxes draws, as one path for each class, on whole pixels. Boxes on the same
// pixels are drawn once, and parts of less than a pixel are left out.
func (p *picture) joinedBoxes() {
	classes := []string{"base", "redo", "undo", "pick", "mark"}
	paths := map[string]*bytes.Buffer{}
	for _, class := range classes {
		paths[class] = new(bytes.Buffer)
	}
	type box struct {
		class      string
		x, y, w, h int
	}
	drawn := map[box]bool{}
	add := func(class string, x, y, w, h float64) {
		b := box{class, int(math.Round(x)), int(math.Round(y)), max(1, int(math.Round(w))), max(1, int(math.Round(h)))}
		if !drawn[b] {
			drawn[b] = true
			fmt.Fprintf(paths[class], "M%d %dh%dv%dh-%dz", b.x, b.y, b.w, b.h, b.w)
		}
	}
	for i := range p.layout.RowSets {
		if p.lanes[i] < 0 {
			continue
		}
		b := p.place(i)
		add("base", b.x, b.y, b.w, b.h)
		if b.redo >= 1 {
			add("redo", b.x, b.y, b.w, b.redo)
		}
		if b.undo >= 1 {
			add("undo", b.x, b.y+b.h-b.undo, b.w, b.undo)
		}
		if p.picked[p.layout.RowSets[i].ID] {
			add("pick", b.x, b.y, b.w, b.h)
			if b := (box{class: "mark", x: int(b.x + b.w/2)}); !drawn[b] {
				drawn[b] = true
				fmt.Fprintf(paths["mark"], "M%d %sl-4 8h8z", b.x, number(p.top+p.height+4))
			}
		}
	}
	for _, class := range classes {
		if path := paths[class]; path.Len() > 0 {
			p.print(`<path class="%s"%s d="%s"/>`+"\n", class, p.fill(class), path)
		}
	}
}

// fill returns the attribute of a pattern, which the style of a page cannot refer to.
func (p *picture) fill(class string) string {
	if p.embedded && (class == "redo" || class == "undo") {
		return ` fill="url(#` + class + p.options.Suffix + `)"`
	}
	return ""
}

func (p *picture) rect(class string, x, y, w, h float64) {
	p.print(`<rect class="%s"%s x="%s" y="%s" width="%s" height="%s"/>`, class, p.fill(class), number(x),
		number(y), number(w), number(h))
}

// share returns the height of a part of a box: high enough to be seen, at most half.
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
	base := p.top + p.height
	p.print(`<path class="line" d="M%d %sH%d"/>`+"\n", left, number(base), left+plotWidth)
	for percent := 0; percent <= 100; percent += 10 {
		x := left + plotWidth*float64(percent)/100
		p.print(`<path class="line" d="M%s %sv5"/>`, number(x), number(base))
		p.print(`<text class="small" x="%s" y="%s" text-anchor="middle">%d %%</text>`+"\n",
			number(x), number(base+26), percent)
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
		p.print(`<path class="grid" d="M%d %sH%d"/><text class="small" x="%d" y="%s" text-anchor="end">%d</text>`+"\n",
			left, number(y), left+plotWidth, left-6, number(y+4), n)
	}
	p.print(`<text class="small" transform="translate(14 %s) rotate(-90)" text-anchor="middle">height</text>`+
		"\n", number(p.top+p.height/2))
	p.print(`<text x="%d" y="%s" text-anchor="middle">share of the data, by key</text>`+"\n", left+plotWidth/2,
		number(base+46))
	first, last := p.bounds()
	if first >= 0 {
		p.print(`<text class="small" x="%d" y="%s">first key %s</text>`+"\n", left, number(base+66),
			escaped(cut(p.options.Key(p.layout.RowSets[first].MinKey), 70)))
		p.print(`<text class="small" x="%d" y="%s" text-anchor="end">last key %s</text>`+"\n", left+plotWidth,
			number(base+66), escaped(cut(p.options.Key(p.layout.RowSets[last].MaxKey), 70)))
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
