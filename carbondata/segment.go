package carbondata

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
)

// segmentFile says where a segment is.
type segmentFile struct {
	Locations map[string]struct {
		Files      []string `json:"files"`
		Partitions []string `json:"partitions"`
		Status     string   `json:"status"`
		Merged     string   `json:"mergeFileName"`
		Relative   bool     `json:"isRelative"`
	} `json:"locationMap"`
}

const deletedStatus = "Marked for Delete" // of a segment, and of a folder of it

// visible reports whether the rows of a segment are in the table. Statuses: carbondata spec §11.2.
func (s *segmentStatus) visible() (bool, error) {
	if strings.EqualFold(s.Visibility, "false") {
		return false, nil
	}
	switch s.Status {
	case "Success", "Partial Success", "Marked for Update":
	case "Failure", deletedStatus, "Compacted", "Overwrite In Progress", "In Progress", "Update":
		return false, nil
	case "Streaming", "Streaming Finish":
		return false, fault.Unsupportedf("segment %q: streaming", s.Name)
	case "":
		return false, fault.Corruptf("segment %q: no status", s.Name)
	default:
		return false, fault.Unsupportedf("segment %q: status %q", s.Name, s.Status)
	}
	if s.Format != "" && !strings.EqualFold(s.Format, columnarName) {
		return false, fault.Unsupportedf("segment %q: format %q", s.Name, s.Format)
	}
	return true, nil
}

// parseStatus returns the segments of a tablestatus, and the name of the table's tableupdatestatus,
// which the first segment has, in the table or not.
func parseStatus(b []byte) (list []segmentStatus, updates string, err error) {
	shown := map[string]bool{}
	err = eachElement(b, func(s segmentStatus) (err error) {
		if len(list) == 0 {
			updates = s.Updates
		} else if updates == "" && strings.HasPrefix(s.Updates, updatePrefix) {
			return fault.Corruptf("segment %q names %s, and the first segment does not", s.Name, s.Updates)
		}
		if s.shown, err = s.visible(); err != nil {
			return err
		}
		// In old tables a segment can name the segment that it was merged into.
		if s.shown && s.Merged != "" {
			s.Name = s.Merged
			s.shown = !shown[s.Name]
		}
		shown[s.Name] = shown[s.Name] || s.shown
		list = append(list, s)
		return nil
	})
	return list, updates, err
}

// segmentFolder is a folder with files of a segment.
type segmentFolder struct {
	folder     string // in the table's folder if relative
	relative   bool
	files      []string // index files
	merged     string   // merged index file, or ""; it may contain some of files, which need not exist then
	partitions []string // columns whose values are in the names of folders
}

// parseSegment returns the folders of a segment, by name.
func parseSegment(b []byte) (folders []segmentFolder, err error) {
	var s segmentFile
	if err := unmarshal(b, &s); err != nil {
		return nil, err
	}
	if s.Locations == nil {
		return nil, fault.Corruptf("no locationMap")
	}
	for _, folder := range slices.Sorted(maps.Keys(s.Locations)) {
		at := s.Locations[folder]
		switch at.Status {
		case "", "Success":
		case deletedStatus:
			continue
		default:
			return nil, fault.Unsupportedf("folder %q: status %q", folder, at.Status)
		}
		if len(at.Files) == 0 && at.Merged == "" {
			return nil, fault.Corruptf("no index file in %q", folder)
		}
		for _, name := range at.Files {
			if !isName(name) || !strings.HasSuffix(name, indexSuffix) {
				return nil, fault.Corruptf("index file %q", name)
			}
		}
		if at.Merged != "" && (!isName(at.Merged) || !strings.HasSuffix(at.Merged, mergeSuffix)) {
			return nil, fault.Corruptf("index file %q", at.Merged)
		}
		f := segmentFolder{folder: folder, relative: at.Relative, files: at.Files, merged: at.Merged}
		for _, partition := range at.Partitions {
			column, _, ok := strings.Cut(partition, "=")
			if !ok {
				return nil, fault.Corruptf("folder %q: partition %q", folder, partition)
			}
			f.partitions = append(f.partitions, column)
		}
		folders = append(folders, f)
	}
	return folders, nil
}

// inTable returns the path of a folder in the table's folder dir.
func inTable(dir, folder string) (string, error) {
	folder = strings.Trim(folder, "/")
	if folder != "" && !filepath.IsLocal(folder) {
		return "", fault.Corruptf("folder %q", folder)
	}
	return filepath.Join(dir, folder), nil
}

// outsidePath returns the path of a folder outside of the table, a path or a URI of this machine's
// file system.
func outsidePath(folder string) (string, error) {
	path, _ := strings.CutPrefix(folder, "file:")
	if scheme, _, ok := strings.Cut(path, "://"); ok {
		return "", fault.Unsupportedf("files in file system %q, in %s", scheme, folder)
	}
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) {
		return "", fault.Corruptf("folder %q", folder)
	}
	return path, nil
}

// listFolder returns the index files of a segment without segment file, which are all in one
// folder: the newest merged one, and those that it does not contain. Without a merged one a failed
// load can have left others: the newest are the segment's, or, in a segment with updates, those
// from its load and from the time of its updates.
func (s *segmentStatus) listFolder(path string) (f segmentFolder, err error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, fault.Corruptf("no segment file, and no folder %s", path)
	}
	if err != nil {
		return f, err
	}
	newest := func(a, b string, at func(string) int64) bool { return a == "" || at(b) > at(a) }
	mergeTime := func(name string) int64 { return timestamp(strings.ReplaceAll(name, "_", "-")) }
	last := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasSuffix(name, mergeSuffix) && newest(f.merged, name, mergeTime):
			f.merged = name
		case strings.HasSuffix(name, indexSuffix):
			f.files = append(f.files, name)
			if newest(last, name, timestamp) {
				last = name
			}
		}
	}
	if len(f.files) == 0 && f.merged == "" {
		return f, fault.Corruptf("no segment file, and no index files in %s", path)
	}
	if f.merged != "" {
		return f, nil
	}
	keep := func(at int64) bool { return at == timestamp(last) }
	if s.UpdateStart != "" && s.UpdateEnd != "" {
		load, err1 := strconv.ParseInt(s.Start, 10, 64)
		from, err2 := strconv.ParseInt(s.UpdateStart, 10, 64)
		to, err3 := strconv.ParseInt(s.UpdateEnd, 10, 64)
		if err := errors.Join(err1, err2, err3); err != nil {
			return f, fault.Corruptf("times of updates: %v", err)
		}
		keep = func(at int64) bool { return at <= load || at >= from && at <= to }
	}
	f.files = slices.DeleteFunc(f.files, func(name string) bool { return !keep(timestamp(name)) })
	return f, nil
}

// folders returns the folders of a segment with their paths, in their order.
func (s *segmentStatus) folders(dir string) (list []segmentFolder, paths []string, err error) {
	if s.File == "" {
		path, err := inTable(dir, filepath.Join(factDir, partDir, segmentPrefix+s.Name))
		if err == nil && s.Path != "" {
			path, err = outsidePath(s.Path)
		}
		if err != nil {
			return nil, nil, err
		}
		f, err := s.listFolder(path)
		return []segmentFolder{f}, []string{path}, err
	}
	if !isName(s.File) {
		return nil, nil, fault.Corruptf("segment file %q", s.File)
	}
	b, err := metadata(dir, segmentsDir, s.File)
	if err == nil {
		list, err = parseSegment(b)
	}
	for i := 0; err == nil && i < len(list); i++ {
		path := ""
		if list[i].relative {
			path, err = inTable(dir, list[i].folder)
		} else {
			path, err = outsidePath(list[i].folder)
		}
		paths = append(paths, path)
	}
	return list, paths, inside(err, "%s", s.File)
}

// indexes returns the data files that the index files of a folder name.
func (f *segmentFolder) indexes(
	dir string, read func(path string) (map[string]*indexedFile, []string, error),
) (files map[string]*indexedFile, err error) {
	files = map[string]*indexedFile{}
	merged := map[string]bool{} // index files in the merged one
	names := f.files
	if f.merged != "" {
		names = append([]string{f.merged}, names...)
	}
	for _, name := range names {
		if merged[name] {
			continue
		}
		path := filepath.Join(dir, name)
		more, inner, err := read(path)
		if err != nil {
			return nil, inside(err, "%s", path)
		}
		for _, name := range inner {
			merged[name] = true
		}
		for _, data := range slices.Sorted(maps.Keys(more)) {
			if files[data] != nil {
				return nil, fault.Corruptf("%s: another index file names %q too", path, more[data].name)
			}
			files[data] = more[data]
		}
	}
	return files, nil
}

// addSegment adds the data files of a segment of the table in dir, by name. known has the files of
// other segments by path, with the segment's name; a file in two segments, or twice in one, is
// refused.
func (t *Table) addSegment(dir string, s *segmentStatus, deleted *updates, known map[string]string) error {
	folders, paths, err := s.folders(dir)
	if err != nil {
		return err
	}
	files := map[string]*indexedFile{} // by path
	partitions := map[string][]string{}
	for i := range folders {
		more, err := folders[i].indexes(paths[i], func(path string) (map[string]*indexedFile, []string, error) {
			t.indexes = append(t.indexes, path)
			return indexedFiles(path)
		})
		if err != nil {
			return err
		}
		for _, path := range slices.Sorted(maps.Keys(more)) {
			if other, ok := known[path]; ok {
				return fault.Corruptf("%s: it is in segment %q too, or twice in it", path, other)
			}
			known[path] = s.Name
			files[path], partitions[path] = more[path], folders[i].partitions
		}
	}
	for _, path := range slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		if c := strings.Compare(filepath.Base(a), filepath.Base(b)); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	}) {
		if deleted.drops(s.Name, filepath.Base(path)) {
			t.dropped = append(t.dropped, path)
			continue
		}
		err := t.add(path)
		if errors.Is(err, fs.ErrNotExist) {
			return fault.Corruptf("%s: an index file names it, and it is not there", path)
		}
		if err != nil {
			return err
		}
		f := &t.files[len(t.files)-1]
		f.segment, f.partitions = s.Name, partitions[path]
		if err = files[path].check(f.File); err == nil {
			err = deleted.apply(s.Name, f)
		}
		if err != nil {
			return inside(err, "%s", path)
		}
	}
	return nil
}

// metadata reads a file of a table's metadata. A missing file is damage: the caller has seen a
// reference to it.
func metadata(dir string, name ...string) ([]byte, error) {
	b, err := readWhole(filepath.Join(append([]string{dir, metadataDir}, name...)...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Corruptf("not there")
	}
	return b, err
}
