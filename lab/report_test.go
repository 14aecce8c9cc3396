package lab

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
)

// reportOf returns the report of a small spec with labels that need escapes.
func reportOf(t *testing.T) (string, *Spec) {
	t.Helper()
	s := parsed(t, `{"flush_bytes":"16KB","rowset_bytes":"8KB","workloads":[{"name":"uniform","operations":2000,"label":"</script><b>&\""},
		{"name":"replay","layout":"testdata/ycsb-cut.tsv","merges":2}],"policies":[{"name":"none"},{"name":"leveled","label":"<svg onload=x>"}]}`)
	var out bytes.Buffer
	must.Do(t, WriteReport(&out, s, resultsOf(t, s)))
	return out.String(), s
}

func TestReportRefersToNothingOutside(t *testing.T) {
	page, _ := reportOf(t)
	must.Equal(t, regexp.MustCompile(`(?i)(https?:|//|src=|@import|url\(|<link)`).FindString(page), "",
		"a link to the outside")
	if strings.Contains(page, "<b>&\"") || strings.Contains(page, "<svg onload") ||
		strings.Count(page, "</script>") != 1 {
		t.Error("a label is not escaped")
	}
}

// Each picture is well-formed, with numbers only, and each policy is in each plot.
func TestReportShowsEachPolicyInEachPlot(t *testing.T) {
	page, s := reportOf(t)
	pictures := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
	plots := 0
	for _, svg := range pictures {
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%.300s", svg)
		}
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v: %.300s", err, svg)
			}
		}
		if strings.Contains(svg, "over time") {
			plots++
			must.Equal(t, strings.Count(svg, "<title>"), len(s.Policies), "curves", svg)
		}
	}
	must.Equal(t, plots, len(measures)*len(s.Workloads), "plots")
	must.Contain(t, page, "boxes", "a layout of few or of many rowsets is missing")
	must.Contain(t, page, "filled", "a layout of few or of many rowsets is missing")
	must.Equal(t, strings.Count(page, `<ol class="frames">`), len(s.Policies)*len(s.Workloads), "lists of layouts")
}

func TestTicksAreRoundAndReachTheMost(t *testing.T) {
	for _, most := range []float64{0, 0.003, 0.9, 1, 1.01, 7, 42, 99, 1e6, 123456789} {
		list := ticks(most, 4)
		if len(list) < 2 || len(list) > 6 || list[0] != 0 || list[len(list)-1] < most*(1-1e-9) {
			t.Errorf("%v: %v", most, list)
		}
	}
	for n, want := range map[float64]string{0: "0", 950: "950", 1500: "1.5 k", 2e6: "2 M"} {
		must.Equal(t, shortCount(n), want, n)
	}
}

// The height over each key equals the number of boxes drawn over it.
func TestPicturesOfFewAndManyRowSetsAgree(t *testing.T) {
	spans := []compaction.Span{{From: 0, To: 1}, {From: 0, To: 0.5}, {From: 0.5, To: 1},
		{From: 0.25, To: 0.75}, {From: 0.5, To: 0.5}}
	if got := heightsOver(spans, 4); got[0] != 2 || got[1] != 3 || got[2] != 3 || got[3] != 2 {
		t.Errorf("%v", got)
	}
	if lanes, count := stacked(spans); count != 4 || lanes[0] == lanes[1] || lanes[1] != lanes[2] {
		t.Errorf("%v in %d lanes", lanes, count)
	}
}
