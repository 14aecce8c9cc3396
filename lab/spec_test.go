package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

const goodSpec = `{"seed":7,"engine":"simulated","flush_bytes":"64KB","rowset_bytes":"32KB","rewrite_ratio":2.5,"workloads":[
	{"name":"uniform"},{"name":"zipf","theta":0.5,"keys":2000,"operations":4000,"value_bytes":100,"history":50,"label":"z"},
	{"name":"time-series","late":0.1,"series":3},{"name":"hot-updates","hot":1},{"name":"old-deletes"},
	{"name":"replay","layout":"a.tsv","merges":3},{"name":"replay","events":"a.jsonl","table":"t","label":"events"}],
	"policies":[{"name":"none"},{"name":"overlap","depth":3},{"name":"budgeted","budget":"16MB","min_quality":0.1,"small_rowsets":0.02},
	{"name":"tiered","runs":3,"ratio":5},{"name":"leveled","ratio":8},{"name":"overlap","label":"again"}]}`

func TestSpecWithItsDefaultsIsReadAgain(t *testing.T) {
	s := must.Get(ParseSpec([]byte(goodSpec)))(t)
	if w := s.Workloads[0]; w.Keys != 100_000 || w.Operations != 200_000 ||
		w.ValueBytes != 100 || w.Label != "uniform" {
		t.Errorf("%+v", w)
	}
	if w, p := s.Workloads[4], s.Policies[0]; w.History != 20_000 || p.Budget != 16<<20 {
		t.Errorf("%+v %+v", w, p)
	}
	var text bytes.Buffer
	must.Do(t, writeSpec(&text, s))
	must.Equal(t, must.Get(ParseSpec(text.Bytes()))(t), s, &text)
}

func TestSpecErrorsNameThePlace(t *testing.T) {
	full := `"workloads":[{"name":"uniform"}],"policies":[{"name":"none"}]`
	workload := func(fields string) string {
		return `{"workloads":[{"name":"uniform"},{` + fields + `}],"policies":[{"name":"none"}]}`
	}
	policy := func(fields string) string { return `{"workloads":[{"name":"uniform"}],"policies":[{` + fields + `}]}` }
	for _, test := range []struct{ spec, want string }{
		{``, "not JSON"},
		{`[]`, "the spec: want an object, not []"},
		{`{} {}`, "text after the value"},
		{`{} x`, "not JSON"},
		{`{"seed":1,"seed":2}`, `the name "seed" appears twice`},
		{"{\"engine\":\"\xff\"}", "invalid UTF-8"},
		{`{}`, "workloads: want at least one"},
		{`{"workloads":[{"name":"uniform"}]}`, "policies: want at least one"},
		{`{"workloads":[],` + full[len(`"workloads":[{"name":"uniform"}],`):] + `}`, "workloads: want at least one"},
		{`{"workloads":{}}`, "workloads: want an array, not {}"},
		{`{"workloads":[3]}`, "workloads[0]: want an object, not 3"},
		{`{"policies":3}`, "policies: want an array, not 3"},
		{`{"sead":1}`, `sead: unknown field; did you mean "seed"?`},
		{`{"seed":-1}`, "seed: want an integer, not -1"},
		{`{"seed":1.5}`, "seed: want an integer, not 1.5"},
		{`{"seed":18446744073709551616}`, "seed: want an integer"},
		{`{"engine":1}`, "engine: want a string, not 1"},
		{`{"engine":"fast",` + full + `}`, `engine: "fast": want "simulated" or "real"`},
		{`{"flush_bytes":1000}`, "flush_bytes: want a string, not 1000"},
		{`{"flush_bytes":"1000"}`, `flush_bytes: "1000" is not a size`},
		{`{"flush_bytes":"0MB"}`, "flush_bytes: 0B: want at least 1KB, at most 64GB"},
		{`{"rowset_bytes":"1B"}`, "rowset_bytes: 1B: want at least 1KB"},
		{`{"rewrite_ratio":"2"}`, `rewrite_ratio: want a number, not "2"`},
		{`{"rewrite_ratio":-1}`, "rewrite_ratio: -1: want at least 0"},
		{`{"rewrite_ratio":1e999}`, "rewrite_ratio: want a number, not 1e999"},
		{workload(`"name":"uniforn"`), `workloads[1].name: unknown workload "uniforn"; did you mean "uniform"?`},
		{workload(`"label":"x"`), `workloads[1].name: unknown workload ""`},
		{workload(`"name":"uniform"`), `workloads[1].label: workloads[0] has the label "uniform" too`},
		{workload(`"name":"zipf","key":1`), `workloads[1].key: unknown field`},
		{workload(`"name":"zipf","keys":0`), "workloads[1].keys: 0: want at least 1"},
		{workload(`"name":"zipf","keys":-5`), "workloads[1].keys: -5: want at least 1"},
		{workload(`"name":"zipf","keys":null`), "workloads[1].keys: want an integer, not null"},
		{workload(`"name":"zipf","operations":100000001`),
			"workloads[1].operations: 100000001: want at least 1, at most 1e+08"},
		{workload(`"name":"zipf","operations":1e3`), "workloads[1].operations: want an integer, not 1e3"},
		{workload(`"name":"zipf","value_bytes":65537`),
			"workloads[1].value_bytes: 65537: want at least 1, at most 65536"},
		{workload(`"name":"zipf","history":0`), "workloads[1].history: 0: want at least 1"},
		{workload(`"name":"zipf","theta":0`), "workloads[1].theta: 0: want above 0, at most 10"},
		{workload(`"name":"zipf","theta":10.5`), "workloads[1].theta: 10.5: want above 0"},
		{workload(`"name":"zipf","hot":0.5`), "workloads[1].hot: the workload zipf has no such field"},
		{workload(`"name":"hot-updates","hot":1.5`), "workloads[1].hot: 1.5: want above 0, at most 1"},
		{workload(`"name":"time-series","late":0.9`), "workloads[1].late: 0.9: want at least 0, at most 0.5"},
		{workload(`"name":"time-series","series":0`), "workloads[1].series: 0: want at least 1"},
		{workload(`"name":"old-deletes","theta":0.5`),
			"workloads[1].theta: the workload old-deletes has no such field"},
		{workload(`"name":"replay"`), "workloads[1]: replay: want either a layout or events"},
		{workload(`"name":"replay","layout":"a","events":"b"`), "workloads[1]: replay: want either a layout or events"},
		{workload(`"name":"replay","layout":"a","keys":3`), "workloads[1].keys: the workload replay has no such field"},
		{workload(`"name":"replay","layout":7`), "workloads[1].layout: want a string, not 7"},
		{workload(`"name":"replay","events":"a","merges":7`), "workloads[1].merges: only with a layout"},
		{workload(`"name":"replay","layout":"a","table":"t"`), "workloads[1].table: only with events"},
		{workload(`"name":"replay","layout":"a","merges":0`), "workloads[1].merges: 0: want at least 1"},
		{`{"engine":"real","workloads":[{"name":"replay","layout":"a"}],"policies":[{"name":"none"}]}`,
			`workloads[0]: replay has no rows: want the engine "simulated"`},
		{workload(`"name":"versions"`), `workloads[1]: versions reads rows: want the engine "real"`},
		{`{"engine":"real","workloads":[{"name":"versions","versions":1}],"policies":[{"name":"none"}]}`,
			"workloads[0].versions: 1: want at least 2, at most 1000"},
		{`{"engine":"real","workloads":[{"name":"versions","operations":9}],"policies":[{"name":"none"}]}`,
			"workloads[0].operations: the workload versions has no such field"},
		{policy(`"name":"budget"`), `policies[0].name: unknown policy "budget"`},
		{policy(`"name":"none","depth":3`), "policies[0].depth: the policy none has no such field"},
		{policy(`"name":"none","budget":"16 MB"`), `policies[0].budget: "16 MB" is not a size`},
		{policy(`"name":"none","budget":"0B"`), "policies[0].budget: 0B: want at least 1B"},
		{policy(`"name":"overlap","depth":1`), "policies[0].depth: 1: want at least 2"},
		{policy(`"name":"budgeted","min_quality":0`), "policies[0].min_quality: 0: want above 0"},
		{policy(`"name":"budgeted","small_rowsets":0.5`),
			"policies[0]: MinQuality is 0.01, want more than SmallRowSets, 0.5"},
		{policy(`"name":"budgeted","small_rowsets":-2`), "policies[0].small_rowsets: -2: want at least -1"},
		{policy(`"name":"tiered","runs":1`), "policies[0].runs: 1: want at least 2"},
		{policy(`"name":"tiered","ratio":1.2`), "policies[0].ratio: 1.2: want at least 1.5"},
		{policy(`"name":"leveled","label":3`), "policies[0].label: want a string, not 3"},
		{policy(`"name":"none"},{"name":"none"`), `policies[1].label: policies[0] has the label "none" too`},
	} {
		_, err := ParseSpec([]byte(test.spec))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\ngot  %v\nwant %s", test.spec, err, test.want)
		}
	}
}

func TestPoliciesAndWorkloadsAreThoseOfSpecs(t *testing.T) {
	for _, p := range Policies() {
		if _, err := (&Policy{Name: p.Name}).policy(); err != nil ||
			options[p.Name] == nil && p.Name != "none" || p.About == "" {
			t.Errorf("%+v: %v", p, err)
		}
	}
	must.Equal(t, len(options), len(Policies()), Policies(), Workloads())
	must.Equal(t, len(Workloads()), len(kinds), Policies(), Workloads())
}

// The specs of docs/lab.md are valid.
func TestSpecsOfThePageAreValid(t *testing.T) {
	names, err := filepath.Glob("../docs/lab/*.json")
	if err != nil || len(names) < 8 {
		t.Fatalf("%v, %v", names, err)
	}
	page := must.Get(os.ReadFile("../docs/lab.md"))(t)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil {
			_, err = ParseSpec(text)
		}
		must.Do(t, err, name)
		must.Contain(t, string(page), "](lab/"+filepath.Base(name)+")", "docs/lab.md does not link", name)
	}
}

// Results of all experiments are kept in memory, so their number is limited.
func TestSpecWithTooManyExperiments(t *testing.T) {
	var workloads, policies []string
	for i := range 40 {
		workloads = append(workloads, fmt.Sprintf(`{"name":"uniform","label":"w%d","keys":10,"operations":10}`, i))
		policies = append(policies, fmt.Sprintf(`{"name":"none","label":"p%d"}`, i))
	}
	parse := func(n int) error {
		_, err := ParseSpec(fmt.Appendf(nil, `{"workloads":[%s],"policies":[%s]}`, strings.Join(workloads, ","),
			strings.Join(policies[:n], ",")))
		return err
	}
	if err := parse(40); err == nil || !strings.Contains(err.Error(), "1600 experiments") {
		t.Errorf("%v, want an error with 1600 experiments", err)
	}
	must.Do(t, parse(25))
}
