import java.util.*;
import org.apache.kudu.*;
import org.apache.kudu.client.*;

/**
 * A query over all rows. Predicates are pushed down to the server; the rows of the scan are aggregated here, since Kudu has
 * no other way.
 */
final class Query {
  private final Lineitem t;
  private final String[] q;
  private final Map<String, long[]> groups = new TreeMap<>();

  Query(Lineitem t, String[] q) {
    this.t = t;
    this.q = q;
  }

  List<String> run() throws Exception {
    switch (q[1]) {
      case "sum": // COLUMN
        total(scan(List.of(q[2])), 0);
        break;
      case "below": // COLUMN VALUE, sum of COLUMN
        total(scan(List.of(q[4]), compare(q[2], KuduPredicate.ComparisonOp.LESS, q[3])), 0);
        break;
      case "equal":
        total(scan(List.of(q[4]), compare(q[2], KuduPredicate.ComparisonOp.EQUAL, q[3])), 0);
        break;
      case "group":
        group(scan(List.of("l_quantity", "l_shipmode")));
        break;
      case "q1": // UNTIL
        q1(scan(List.of("l_quantity", "l_extendedprice", "l_discount", "l_tax", "l_returnflag", "l_linestatus"),
            compare("l_shipdate", KuduPredicate.ComparisonOp.LESS_EQUAL, q[2])));
        break;
      case "q6": // FROM UNTIL, LEAST MOST, BELOW
        total(scan(List.of("l_extendedprice", "l_discount"), compare("l_shipdate", KuduPredicate.ComparisonOp.GREATER_EQUAL, q[2]),
            compare("l_shipdate", KuduPredicate.ComparisonOp.LESS, q[3]), compare("l_discount", KuduPredicate.ComparisonOp.GREATER_EQUAL, q[4]),
            compare("l_discount", KuduPredicate.ComparisonOp.LESS_EQUAL, q[5]), compare("l_quantity", KuduPredicate.ComparisonOp.LESS, q[6])), 1);
        break;
      default:
        throw new IllegalArgumentException("unknown query " + q[1]);
    }
    List<String> lines = new ArrayList<>();
    groups.forEach((key, sums) -> {
      StringBuilder line = new StringBuilder(key).append('\t');
      for (long s : sums) {
        line.append(s).append(' ');
      }
      lines.add(line.toString().stripTrailing());
    });
    return lines;
  }

  private KuduPredicate compare(String column, KuduPredicate.ComparisonOp op, String value) {
    return KuduPredicate.newComparisonPredicate(t.table.getSchema().getColumn(column), op, Long.parseLong(value));
  }

  private KuduScanner scan(List<String> columns, KuduPredicate... predicates) {
    KuduScanner.KuduScannerBuilder b = t.client.newScannerBuilder(t.table);
    b.setProjectedColumnNames(columns).prefetching(true);
    for (KuduPredicate p : predicates) {
      b.addPredicate(p);
    }
    KuduScanner s = b.build();
    s.setReuseRowResult(true);
    s.setRowDataFormat(AsyncKuduScanner.RowDataFormat.COLUMNAR);
    return s;
  }

  private long[] sums(String key) {
    return groups.computeIfAbsent(key, k -> new long[6]);
  }

  /** Adds the first column, multiplied by the second if factors is 1. */
  private void total(KuduScanner s, int factors) throws KuduException {
    long sum = 0;
    long n = 0;
    while (s.hasMoreRows()) {
      RowResultIterator rows = s.nextRows();
      while (rows.hasNext()) {
        RowResult r = rows.next();
        sum += factors == 0 ? r.getLong(0) : r.getLong(0) * r.getLong(1);
        n++;
      }
    }
    sums("")[0] = sum;
    sums("")[1] = n;
  }

  private void group(KuduScanner s) throws KuduException {
    while (s.hasMoreRows()) {
      RowResultIterator rows = s.nextRows();
      while (rows.hasNext()) {
        RowResult r = rows.next();
        long[] g = sums(r.getString(1));
        g[0] += r.getLong(0);
        g[1]++;
      }
    }
  }

  private void q1(KuduScanner s) throws KuduException {
    while (s.hasMoreRows()) {
      RowResultIterator rows = s.nextRows();
      while (rows.hasNext()) {
        RowResult r = rows.next();
        long price = r.getLong(1);
        long discount = r.getLong(2);
        long[] g = sums(r.getString(4).concat(r.getString(5)));
        g[0] += r.getLong(0);
        g[1]++;
        g[2] += price;
        g[3] += price * (100 - discount);
        g[4] += price * (100 - discount) * (100 + r.getLong(3));
        g[5] += discount;
      }
    }
  }
}
