import java.util.*;

/** Repeated calls, timed in this process: they are so short that the requests to this program would distort the time. */
final class Calls {
  private interface Call {
    void make(List<Key> keys) throws Exception;
  }

  private static final int RANGE_ROWS = 100;
  private static final int SUPPKEY = 3;
  private static final int COMMENT = 15;

  private final List<List<Key>> sets = new ArrayList<>();
  private final Call call;
  private long sum;
  private long rows;

  /** Each call uses per keys. */
  Calls(Lineitem table, String name, List<Key> keys, int per) {
    for (int i = 0; i + per <= keys.size(); i += per) {
      sets.add(keys.subList(i, i + per));
    }
    Lineitem.Sink add = r -> {
      sum += r.getLong(SUPPKEY);
      rows++;
    };
    switch (name) {
      case "get":
        call = set -> {
          table.get(set.get(0), add);
          expect(1);
        };
        break;
      case "miss":
        call = set -> {
          table.get(set.get(0), add);
          expect(0);
          sum++;
        };
        break;
      case "many":
        call = set -> {
          table.getMany(set, add);
          expect(set.size());
        };
        break;
      case "range":
        Lineitem.Sink both = r -> sum += r.getLong(SUPPKEY) + r.getString(COMMENT).length();
        call = set -> table.range(set.get(0), RANGE_ROWS, both);
        break;
      default:
        throw new IllegalArgumentException("unknown call " + name);
    }
  }

  private void expect(int n) {
    if (rows != n) {
      throw new IllegalStateException(rows + " rows, not " + n);
    }
    rows = 0;
  }

  /** Makes each call at least twice, for at least the given time, and returns the checksum of one round. */
  long warm(long millis) throws Exception {
    long begin = System.nanoTime();
    for (int pass = 0; pass < 2 || System.nanoTime() - begin < millis * 1_000_000; pass++) {
      sum = 0;
      for (List<Key> set : sets) {
        call.make(set);
      }
    }
    return sum;
  }

  /** Makes random calls, and returns their number and their duration in nanoseconds. */
  long[] run(long least, long millis) throws Exception {
    Random random = new Random(1);
    long begin = System.nanoTime();
    long done = 0;
    while (done < least || System.nanoTime() - begin < millis * 1_000_000) {
      call.make(sets.get(random.nextInt(sets.size())));
      done++;
    }
    return new long[] {done, System.nanoTime() - begin};
  }
}
