package lab

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

func TestReadLayoutRefusesMalformedLines(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"32\ta\tb\n32\ta", "l:2: 2 fields, want size, first key, last key"},
		{"32\ta\tb\tc", "l:1: 4 fields"},
		{"# comment\n\n-1\ta\tb", `l:3: "-1": want a size`},
		{"1.5\ta\tb", `l:1: "1.5": want a size`},
		{"9000000000000\ta\tb", `want a size`},
		{"8000000000000\ta\tb\n8000000000000\ta\tb", "l:2: the sizes add up"},
		{"1\tb\ta", `l:1: the first key, "b", is above the last one, "a"`},
		{"1\t" + strings.Repeat("x", 1<<20) + "\ty", "l:1: "},
	} {
		if _, err := ReadLayout(strings.NewReader(test.text), "l"); err == nil || !errors.Is(err, ErrLine) ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40q: got %.200v, want %s", test.text, err, test.want)
		}
	}
	l, err := ReadLayout(strings.NewReader("2\tb\tc\r\n# x\n1\ta\ta"), "l")
	if err != nil || len(l.RowSets) != 2 || l.RowSets[0].ID != 2 ||
		string(l.RowSets[1].MaxKey) != "c" || l.RowSets[1].Bytes != 2<<20 {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestScoreOfARealLayout(t *testing.T) {
	f := must.Get(os.Open(corpustest.Dir(t) + "/data/ycsb-test-rowsets.tsv"))(t)
	defer f.Close()
	l, err := ReadLayout(f, "ycsb")
	must.Do(t, err)
	must.Equal(t, len(l.RowSets), 6815, "rowsets")
	s, err := Score(l, compaction.Budgeted{}, 128<<20)
	if err != nil || len(s.Choice.RowSets) != 10 || math.Abs(s.Choice.Quality-0.17362) > 1e-5 || s.Bytes > 128<<20 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := Score(l, compaction.None{}, 128<<20); err != nil || s.Bytes != 0 || s.Choice.Quality != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Absurd sizes neither fail nor take long.
func TestLayoutsOfAbsurdSizesAreReplayed(t *testing.T) {
	for _, text := range []string{"0\ta\tb\n0\ta\tb\n0\ta\tb\n0\ta\tb",
		"4000000000000\ta\tb\n0\ta\tb\n1\t\t\n1\ta\tz\n", "1\ta\ta\n1\ta\ta\n1\ta\ta\n1\ta\ta\n", ""} {
		l := must.Get(ReadLayout(strings.NewReader(text), "l"))(t)
		for _, p := range Policies() {
			spec := &Spec{Workloads: []Workload{{Name: "replay", Layout: "l"}}, Policies: []Policy{{Name: p.Name}}}
			spec.fill()
			policy, _ := spec.Policies[0].policy()
			x := &experiment{spec: spec, workload: &spec.Workloads[0], source: &layoutReplay{l, 20}, policy: policy,
				budget: math.MaxInt64, result: &Result{}}
			must.Do(t, x.run(t.Context(), func(int64) {}), text, p.Name)
		}
	}
}
