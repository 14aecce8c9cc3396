package lab

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/compaction"
)

// Size of a plot, and its margins, in user units.
const (
	plotWidth, plotHeight = 480, 230
	plotLeft, plotRight   = 56, 470
	plotTop, plotBottom   = 10, 200
)

// tick is a mark of an axis.
type tick struct {
	At, TextAt   string
	Text, Anchor string
}

// curve is the line of a policy.
type curve struct{ Policy, Class, Path string }

// coordinate formats a position.
func coordinate(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// ticks returns about n round numbers from 0 to at least most.
func ticks(most float64, n int) []float64 {
	if most <= 0 || math.IsInf(most, 0) || math.IsNaN(most) {
		return []float64{0, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(most/float64(n))))
	for _, f := range []float64{1, 2, 5, 10} {
		if step*f*float64(n) >= most {
			step *= f
			break
		}
	}
	var list []float64
	for i := 0; ; i++ {
		list = append(list, float64(i)*step)
		if list[i] >= most*(1-1e-9) {
			return list
		}
	}
}

// plotOf draws a measure of some runs of one workload over time.
func plotOf(runs []*Result, m *measureOf) plot {
	p := plot{Title: m.Title, About: m.about, Width: plotWidth, Height: plotHeight}
	most, end := 0.0, int64(1)
	for _, r := range runs {
		for i := range r.Samples {
			most, end = max(most, m.of(&r.Samples[i])), max(end, r.Samples[i].Operations)
		}
	}
	unit := 1.0
	if m.bytes {
		for most >= 1024*unit {
			unit *= 1024
		}
	}
	marks := ticks(most/unit, 4)
	for i := range marks {
		marks[i] *= unit
	}
	top := marks[len(marks)-1]
	y := func(v float64) float64 { return plotBottom - v/top*(plotBottom-plotTop) }
	x := func(step int64) float64 { return plotLeft + float64(step)/float64(end)*(plotRight-plotLeft) }
	for _, v := range marks {
		p.YTicks = append(p.YTicks, tick{At: coordinate(y(v)), TextAt: coordinate(y(v) + 4), Text: m.tick(v)})
	}
	for i, anchor := range []string{"start", "middle", "end"} {
		step := end * int64(i) / 2
		p.XTicks = append(p.XTicks, tick{At: coordinate(x(step)), Text: shortCount(float64(step)), Anchor: anchor})
	}
	for i, r := range runs {
		var path strings.Builder
		for k := range r.Samples {
			s := &r.Samples[k]
			command := "L"
			if k == 0 {
				command = "M"
			}
			path.WriteString(command + coordinate(x(s.Operations)) + " " + coordinate(y(m.of(s))))
		}
		p.Curves = append(p.Curves, curve{r.Policy, class(i), path.String()})
	}
	return p
}

// classes is the number of styles of lines.
const classes = 8

func class(i int) string { return fmt.Sprintf("c%d", i%classes) }

// shortCount formats a number for an axis: 1500000 is "1.5 M".
func shortCount(v float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G"} {
		if v >= 1000 {
			v, unit = v/1000, u
		}
	}
	return strings.TrimSpace(strconv.FormatFloat(v, 'g', 4, 64) + " " + unit)
}

const (
	pictureWidth, pictureHeight = 600, 138
	mostBoxes                   = 300 // of a picture; with more rowsets it shows their number over each key
	mostLane                    = 9.0 // height of a box
)

// stacked gives each rowset the lowest lane in which it overlaps no other. It returns the number of
// lanes.
func stacked(spans []compaction.Span) (lanes []int, count int) {
	order := make([]int, len(spans))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(spans[a].From, spans[b].From) })
	lanes = make([]int, len(spans))
	var ends []float64
	for _, i := range order {
		lane := 0
		for lane < len(ends) && ends[lane] > spans[i].From {
			lane++
		}
		if lane == len(ends) {
			ends = append(ends, 0)
		}
		ends[lane], lanes[i] = spans[i].To, lane
	}
	return lanes, len(ends)
}

// picture draws a layout: a path of boxes, or of the height over the keys. tallest is the height
// that fills the picture.
func picture(l compaction.Layout, tallest int) (path, kind string) {
	spans := compaction.Spans(l)
	lane := min(mostLane, pictureHeight/float64(max(tallest, 1)))
	var b strings.Builder
	if len(spans) > mostBoxes {
		heights := heightsOver(spans, pictureWidth/2)
		fmt.Fprintf(&b, "M0 %d", pictureHeight)
		for i, h := range heights {
			fmt.Fprintf(&b, "L%d %sH%d", 2*i, coordinate(pictureHeight-float64(h)*lane), 2*i+2)
		}
		fmt.Fprintf(&b, "V%dZ", pictureHeight)
		return b.String(), "filled"
	}
	lanes, _ := stacked(spans)
	for i, s := range spans {
		width := max(0.8, s.Width()*pictureWidth-0.6)
		y := pictureHeight - float64(lanes[i]+1)*lane
		height := lane * 0.85
		fmt.Fprintf(&b, "M%s %sh%sv%sh-%sz", coordinate(s.From*pictureWidth), coordinate(y), coordinate(width),
			coordinate(height), coordinate(width))
	}
	return b.String(), "boxes"
}

// heightsOver returns the number of spans over the middle of each of n parts of the keys.
func heightsOver(spans []compaction.Span, n int) []int {
	change := make([]int, n+1)
	for _, s := range spans {
		from, to := int(math.Ceil(s.From*float64(n)-0.5)), int(math.Ceil(s.To*float64(n)-0.5))
		change[min(max(from, 0), n)]++
		change[min(max(to, 0), n)]--
	}
	height := 0
	for i, c := range change[:n] {
		height += c
		change[i] = height
	}
	return change[:n]
}
