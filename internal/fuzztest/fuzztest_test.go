package fuzztest

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// planted is the environment variable that selects how FuzzToy fails; without it FuzzToy passes.
const planted = "FUZZTEST_PLANTED"

// ballast keeps the allocation in FuzzToy from being optimized away.
var ballast []byte

// FuzzToy is a target that fails as the tests here select.
func FuzzToy(f *testing.F) {
	f.Add(uint8(1), []byte("a seed of some bytes"), false, "text", -1.5)
	f.Add(uint8(200), []byte{}, true, "", 0.0)
	how := os.Getenv(planted)
	Run(f, func(t *testing.T, kind uint8, data []byte, on bool, text string, number float64) {
		if !(len(data) > 4 && data[0] == 'a' && data[2] == 0xff && on) {
			return
		}
		switch how {
		case "error":
			t.Error("planted")
		case "fatal":
			t.Fatal("planted")
		case "panic":
			panic("planted")
		case "allocation":
			ballast = make([]byte, maxAllocation+1)
			ballast = nil
		}
	})
}

// toy runs FuzzToy in a separate process with dir as its working directory, which contains its
// corpus.
func toy(t *testing.T, dir, how string, flags ...string) (output string, ok bool) {
	t.Helper()
	program := must.Get(os.Executable())(t)
	cmd := exec.Command(program, append([]string{"-test.run=^FuzzToy$"}, flags...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), planted+"="+how)
	out, err := cmd.CombinedOutput()
	if _, exit := err.(*exec.ExitError); err != nil && !exit {
		t.Fatal(err)
	}
	return string(out), err == nil
}

func inputs(t *testing.T, dir string) (names []string) {
	t.Helper()
	names = must.Get(filepath.Glob(filepath.Join(dir, "testdata", "fuzz", "FuzzToy", "*")))(t)
	return names
}

func TestFailingInputIsFoundKeptAndRepeatable(t *testing.T) {
	again := regexp.MustCompile(`-fuzztest\.seed (\d+) -fuzztest\.first (\d+) -fuzztest\.executions 1`)
	for _, how := range []string{"error", "fatal", "panic", "allocation"} {
		t.Run("how="+how, func(t *testing.T) {
			dir := t.TempDir()
			out, ok := toy(t, dir, how, "-fuzztest.executions=200000")
			found := again.FindStringSubmatch(out)
			if ok || found == nil {
				t.Fatalf("not found:\n%s", out)
			}
			kept := inputs(t, dir)
			if len(kept) != 1 {
				t.Fatalf("%d inputs kept, want 1:\n%s", len(kept), out)
			}
			if how != "allocation" { // only Run checks it
				if out, ok := toy(t, dir, how); ok {
					t.Errorf("the kept input does not fail in a plain run:\n%s", out)
				}
			}
			if out, ok := toy(t, dir, ""); !ok {
				t.Errorf("the kept input fails without the planted fault, or is not a valid corpus file:\n%s", out)
			}
			// The corpus did not contain the input at the time, and inputs depend on the corpus.
			elsewhere := t.TempDir()
			if out, ok := toy(t, elsewhere, how, "-fuzztest.seed="+found[1], "-fuzztest.first="+found[2],
				"-fuzztest.executions=1"); ok {
				t.Errorf("seed %s, execution %s does not fail again:\n%s", found[1], found[2], out)
			}
			if names := inputs(t, elsewhere); len(names) != 1 || filepath.Base(names[0]) != filepath.Base(kept[0]) {
				t.Errorf("the repeated execution kept %v, want %v", names, kept)
			}
		})
	}
}

func TestPassingTargetPrintsItsNumberOfExecutions(t *testing.T) {
	dir := t.TempDir()
	out, ok := toy(t, dir, "", "-fuzztest.executions=5000", "-fuzztest.seed=7")
	if !ok || !strings.Contains(out, "fuzztest: seed 7: 5000 executions\n") {
		t.Errorf("output:\n%s", out)
	}
	if names := inputs(t, dir); len(names) != 0 {
		t.Errorf("unexpected inputs kept: %v", names)
	}
	out, ok = toy(t, dir, "", "-fuzztest.executions="+strconv.Itoa(math.MaxInt), "-fuzztest.for=10ms")
	if !ok || !regexp.MustCompile(`fuzztest: seed [1-9]\d*: \d+ executions\n`).MatchString(out) {
		t.Errorf("stopped by time, output:\n%s", out)
	}
}

func TestTargetWithoutSeedsFails(t *testing.T) {
	program := must.Get(os.Executable())(t)
	out, err := exec.Command(program, "-test.run=^FuzzToyWithoutSeeds$", "-fuzztest.executions=5").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no seeds") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// FuzzToyWithoutSeeds is run by TestTargetWithoutSeedsFails.
func FuzzToyWithoutSeeds(f *testing.F) { Run(f, func(*testing.T, []byte) {}) }

func values(list ...any) (v []reflect.Value) {
	for _, x := range list {
		v = append(v, reflect.ValueOf(x))
	}
	return v
}

var everyType = [][]reflect.Value{
	values([]byte("some bytes, not so few"), "text", true, uint8(200), int8(-3), uint16(9), int16(-9),
		uint32(70000), int32(-70000), uint64(1<<60), int64(-1), uint(3), -3,
		float32(1.5), math.Inf(-1)),
	values([]byte{}, "", false, uint8(0), int8(0), uint16(0), int16(0), uint32(0), int32(0), uint64(0),
		int64(0), uint(0), 0, float32(0), 0.0),
}

func TestInputDependsOnlyOnSeedNumberAndCorpus(t *testing.T) {
	args := make([]reflect.Value, len(everyType[0]))
	texts := map[string]bool{}
	one, two := newMutator(everyType), newMutator(everyType)
	for i := range uint64(2000) {
		one.input(5, i, args)
		text := string(corpusText(args))
		texts[text] = true
		if i%7 == 0 { // as if it were the first
			two.input(5, i, args)
			if again := string(corpusText(args)); again != text {
				t.Fatalf("execution %d:\n%s\nthen\n%s", i, text, again)
			}
		}
	}
	if len(texts) < 1500 {
		t.Errorf("2000 executions have only %d different inputs", len(texts))
	}
	one.input(5, 9, args)
	five := string(corpusText(args))
	if one.input(6, 9, args); string(corpusText(args)) == five {
		t.Error("seeds 5 and 6 give the same input")
	}
}

func TestMutatorKeepsTypesAndSeedsAndChangesEveryValue(t *testing.T) {
	m := newMutator(everyType)
	before := [2]string{string(corpusText(everyType[0])), string(corpusText(everyType[1]))}
	args := make([]reflect.Value, len(everyType[0]))
	changed := make([]int, len(args))
	for i := range uint64(20000) {
		m.input(1, i, args)
		for k, v := range args {
			if v.Type() != everyType[0][k].Type() {
				t.Fatalf("value %d became %v", k, v.Type())
			}
			if isBytes(v) && v.Len() > m.limit || v.Kind() == reflect.Slice && v.Cap() != v.Len() {
				t.Fatalf("value %d: length %d, limit %d", k, v.Len(), m.limit)
			}
			if text := corpusText(args[k : k+1]); !bytes.Equal(text, corpusText(everyType[0][k:k+1])) &&
				!bytes.Equal(text, corpusText(everyType[1][k:k+1])) {
				changed[k]++
			}
		}
	}
	for k, n := range changed {
		if n < 100 && everyType[0][k].Kind() != reflect.Bool {
			t.Errorf("value %d, %v, got only %d new values", k, everyType[0][k].Type(), n)
		}
	}
	if after := [2]string{string(corpusText(everyType[0])), string(corpusText(everyType[1]))}; after != before {
		t.Errorf("the seeds were changed to %q", after)
	}
}

// Each kind of change is needed to reach one of these values from the seed in few steps.
func TestMutatorMakesTypicalFormatDamage(t *testing.T) {
	seeds := [][]reflect.Value{values([]byte("0123456789abcdef")), values([]byte("OTHER"))}
	wanted := map[string]func(b []byte) bool{
		"a bit":            func(b []byte) bool { return string(b) == "0123456789abcdeg" },
		"a field of ones":  func(b []byte) bool { return string(b) == "0123\xff\xff\xff\xff89abcdef" },
		"a big-endian one": func(b []byte) bool { return string(b) == "0123\x00\x00\x00\x0189abcdef" },
		"cut off":          func(b []byte) bool { return string(b) == "0123456" },
		"cut out":          func(b []byte) bool { return string(b) == "012389abcdef" },
		"twice": func(b []byte) bool {
			return string(b) == "01234534567" || string(b) == "0123456734567"+"89abcdef"
		},
		"start and end":     func(b []byte) bool { return string(b) == "01234567HER" },
		"a piece of others": func(b []byte) bool { return string(b) == "01234OTHER56789abcdef" },
		"a run":             func(b []byte) bool { return bytes.Contains(b, bytes.Repeat([]byte{0}, 30)) },
		"a long varint":     func(b []byte) bool { return string(b) == "01234\xff\xff\xff\xff\x0f56789abcdef" },
		"nothing left":      func(b []byte) bool { return len(b) == 0 },
	}
	m, args := newMutator(seeds), make([]reflect.Value, 1)
	for i := uint64(0); i < 3_000_000 && len(wanted) > 0; i++ {
		m.input(11, i, args)
		for name, is := range wanted {
			if is(args[0].Bytes()) {
				delete(wanted, name)
			}
		}
	}
	if len(wanted) > 0 {
		names := []string{}
		for name := range wanted {
			names = append(names, name)
		}
		slices.Sort(names)
		t.Error("never made:", fmt.Sprint(names))
	}
}
