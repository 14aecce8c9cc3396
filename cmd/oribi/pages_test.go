package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// module is the root directory of the module.
var module = filepath.Join("..", "..")

// page reads a Markdown page of the module.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fence is a fenced block of a page: text[from:to], without the fences.
type fence struct{ from, to int }

// consoles finds the fenced blocks of console sessions.
func consoles(text string) (found []fence) {
	const open = "\n```console\n"
	for at := 0; ; {
		i := strings.Index(text[at:], open)
		if i < 0 {
			return found
		}
		from := at + i + len(open)
		// The newline of the opening fence may be the one before the closing fence.
		end := strings.Index(text[from-1:], "\n```\n")
		if end < 0 {
			return found
		}
		at = from + end
		found = append(found, fence{from, at})
	}
}

// varying matches what differs between runs: timestamps, as numbers and as times, and IDs.
var varying = regexp.MustCompile(`\b[78]\d{18}\b|\b20\d\d-[-0-9]{5}T[0-9:.]+Z\b|\b[0-9a-f]{32}\b`)

// retype runs the commands of a console block and returns the block with their output. A command is
// a line that begins with "$ ", with the following lines that begin with "> "; the rest is output.
// Output that differs only in varying parts is kept unchanged.
func retype(t *testing.T, text string) string {
	var out strings.Builder
	for _, part := range strings.Split("\n"+text, "\n$ ")[1:] {
		lines := strings.SplitAfter(strings.TrimSuffix(part, "\n")+"\n", "\n")
		command := lines[0]
		out.WriteString("$ " + lines[0])
		lines = lines[1:]
		for strings.HasPrefix(lines[0], "> ") {
			command += lines[0][2:]
			out.WriteString(lines[0])
			lines = lines[1:]
		}
		want := strings.Join(lines, "")
		var printed bytes.Buffer
		code := shell(t, strings.TrimSuffix(command, "\n"), &printed, &printed)
		got := printed.String()
		if code != 0 && !strings.Contains(got, "oribi: ") {
			t.Errorf("%sexit code %d", command, code)
		}
		if varying.ReplaceAllString(got, "#") == varying.ReplaceAllString(want, "#") {
			got = want
		} else {
			t.Errorf("%sprints:\n%s\nthe page says:\n%s", command, got, want)
		}
		out.WriteString(got)
	}
	return out.String()
}

// TestPagesShowWhatCommandsPrint runs the commands in the console blocks of the pages, each page in
// an empty directory. ORIBI_REWRITE=1 writes the actual output into the pages.
func TestPagesShowWhatCommandsPrint(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for sh")
	}
	if testing.Short() {
		t.Skip("runs a hundred commands")
	}
	pages, err := filepath.Glob(filepath.Join(module, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	typed := 0
	for _, name := range append(pages, filepath.Join(module, "README.md"), filepath.Join(module, "CONTRIBUTING.md")) {
		text := page(t, name)
		found := consoles(text)
		if len(found) == 0 {
			continue
		}
		typed++
		t.Run(filepath.Base(name), func(t *testing.T) {
			name, err := filepath.Abs(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			printed := make([]string, len(found))
			for i, b := range found {
				printed[i] = retype(t, text[b.from:b.to])
			}
			if os.Getenv("ORIBI_REWRITE") == "" {
				return
			}
			for i, b := range slices.Backward(found) {
				text = text[:b.from] + printed[i] + text[b.to:]
			}
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
	if typed == 0 {
		t.Error("found no commands in the pages")
	}
}

// TestPageOfTheCommandNamesItsVerbs compares the table in docs/command.md with the help, in both
// directions for the verbs.
func TestPageOfTheCommandNamesItsVerbs(t *testing.T) {
	help := func(line string) string {
		var out, errs bytes.Buffer
		if code := shell(t, line, &out, &errs); code != 0 {
			t.Errorf("%s: exit code %d: %s", line, code, errs.String())
		}
		return out.String()
	}
	text := page(t, filepath.Join(module, "docs", "command.md"))
	verbs := regexp.MustCompile("(?m)^\\| `(oribi [a-z]+(?: [a-z]+)*)(.*)$").FindAllStringSubmatch(text, -1)
	var named []string
	for _, verb := range verbs {
		named = append(named, verb[1])
		of := help(verb[1] + " --help")
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(verb[2], -1) {
			if !strings.Contains(of, flag+" ") {
				t.Errorf("%s has no flag %s", verb[1], flag)
			}
		}
	}
	all := help("oribi help")
	_, topics, _ := strings.Cut(all, "\nPages, ")
	pages := regexp.MustCompile(`(?m)^  ([a-z]+)  `).FindAllStringSubmatch(topics, -1)
	if len(pages) < 5 {
		t.Errorf("found only %d pages in the help", len(pages))
	}
	intro, _, _ := strings.Cut(text, "\n\n|")
	for _, topic := range pages {
		if !strings.Contains(intro, "`"+topic[1]+"`") && !strings.Contains(intro, "`oribi help "+topic[1]+"`") {
			t.Errorf("docs/command.md does not name the page %q of the help", topic[1])
		}
	}
	listed := regexp.MustCompile(`(?m)^  (oribi [a-z]+(?: [a-z]+)*)`).FindAllStringSubmatch(all, -1)
	if len(listed) < 20 {
		t.Fatalf("found only %d commands in the help", len(listed))
	}
	for _, verb := range listed {
		if !slices.Contains(named, verb[1]) {
			t.Errorf("docs/command.md does not name %q", verb[1])
		}
	}
}
