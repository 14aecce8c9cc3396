package main

import (
	"bytes"
	"github.com/oribi-db/oribi/internal/must"
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
	text := must.Get(os.ReadFile(name))(t)
	return string(text)
}

// pages lists the pages for users.
func pages(t *testing.T) []string {
	t.Helper()
	names := must.Get(filepath.Glob(filepath.Join(module, "docs", "*.md")))(t)
	return append(names, filepath.Join(module, "README.md"), filepath.Join(module, "CONTRIBUTING.md"))
}

// session matches commands of a page, in a fenced block of sh, and the block of text that directly
// follows with their output, if they print anything. Blocks of bash need more than a directory: a
// cluster, the network.
var session = regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n(\n```text\n(.*?)^```\n)?")

// varying matches what differs between runs: timestamps, as numbers and as times, and IDs.
var varying = regexp.MustCompile(`\b[78]\d{18}\b|\b20\d\d-[-0-9]{5}T[0-9:.]+Z\b|\b[0-9a-f]{32}\b`)

// retype runs the commands of a page and returns the page with their output. Output that differs
// only in varying parts is kept unchanged.
func retype(t *testing.T, text string) string {
	var out strings.Builder
	end := 0
	for _, m := range session.FindAllStringSubmatchIndex(text, -1) {
		commands, want := text[m[2]:m[3]], ""
		out.WriteString(text[end : m[3]+len("```\n")])
		end = m[1]
		if m[4] >= 0 {
			want = text[m[6]:m[7]]
		}
		var printed bytes.Buffer
		code := runSh(t, commands, nil, &printed, &printed)
		got := printed.String()
		if code != 0 && !strings.Contains(got, "oribi: ") {
			t.Errorf("%sexit code %d", commands, code)
		}
		if compared(commands, got) == compared(commands, want) {
			got = want
		} else {
			t.Errorf("%sprints:\n%s\nthe page says:\n%s", commands, got, want)
		}
		if got != "" {
			out.WriteString("\n```text\n" + got + "```\n")
		}
	}
	return out.String() + text[end:]
}

// compared returns the part of an output that is the same in each run. The commands of a pipeline run
// at the same time, so the lines that they write to stderr come in any order.
func compared(commands, output string) string {
	output = varying.ReplaceAllString(output, "#")
	if strings.Contains(commands, " | oribi ") {
		lines := strings.SplitAfter(output, "\n")
		slices.Sort(lines)
		output = strings.Join(lines, "")
	}
	return output
}

// TestPagesShowWhatCommandsPrint runs the commands of the pages, each page in an empty directory.
// ORIBI_REWRITE=1 writes the actual output into the pages.
func TestPagesShowWhatCommandsPrint(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for sh")
	}
	if testing.Short() {
		t.Skip("runs a hundred commands")
	}
	typed := 0
	for _, name := range pages(t) {
		text := page(t, name)
		if !session.MatchString(text) {
			continue
		}
		typed++
		t.Run(filepath.Base(name), func(t *testing.T) {
			name := must.Get(filepath.Abs(name))(t)
			t.Chdir(t.TempDir())
			printed := retype(t, text)
			if os.Getenv("ORIBI_REWRITE") == "" || printed == text {
				return
			}
			must.Do(t, os.WriteFile(name, []byte(printed), 0o644))
		})
	}
	if typed < 5 {
		t.Errorf("found commands in %d pages: this test does not recognize them", typed)
	}
}

// TestBlocksOfPagesCanBePasted fails for a block of commands with a prompt.
func TestBlocksOfPagesCanBePasted(t *testing.T) {
	prompt := regexp.MustCompile("(?m)^ *(\\$|>) |^```(console|shell)")
	for _, name := range pages(t) {
		if line := prompt.FindString(page(t, name)); line != "" {
			t.Errorf("%s: %q: commands have no prompt, and their output is in a block of text of its own", name, line)
		}
	}
}

// TestPageOfTheCommandNamesItsVerbs compares the table in docs/command.md with the help, in both
// directions for the verbs.
func TestPageOfTheCommandNamesItsVerbs(t *testing.T) {
	help := func(line string) string {
		var out, errs bytes.Buffer
		must.Equal(t, shell(t, line, &out, &errs), 0, line, errs.String())
		return out.String()
	}
	text := page(t, filepath.Join(module, "docs", "command.md"))
	verbs := regexp.MustCompile("(?m)^\\| `(oribi [a-z]+(?: [a-z]+)*)(.*)$").FindAllStringSubmatch(text, -1)
	var named []string
	for _, verb := range verbs {
		named = append(named, verb[1])
		of := help(verb[1] + " --help")
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(verb[2], -1) {
			must.Contain(t, of, flag+" ", flag)
		}
	}
	all := help("oribi help")
	_, topics, _ := strings.Cut(all, "\nPages, ")
	topicNames := regexp.MustCompile(`(?m)^  ([a-z]+)  `).FindAllStringSubmatch(topics, -1)
	if len(topicNames) < 5 {
		t.Errorf("found only %d pages in the help", len(topicNames))
	}
	intro, _, _ := strings.Cut(text, "\n\n|")
	for _, topic := range topicNames {
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
