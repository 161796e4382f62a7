import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;

/**
 * Trees of Catalyst's, sent to Python in one call. Compiled at run time, by the compiler that Spark compiles its own queries with.
 *
 * Each object of a tree is put under a name of its own into the gateway, so that Python may speak of it without having asked for it; what
 * can be said of it at once is said in JSON: its class, its parts by the names of their accessors, and a few facts that take a call each.
 */
public class Trees {
  private py4j.Gateway gateway;
  private String prefix;
  private IdentityHashMap numbers = new IdentityHashMap();
  private ArrayList objects = new ArrayList();
  private StringBuilder out;
  private IdentityHashMap spoken = new IdentityHashMap();  // expressions of plans: these are often asked for their text
  private int sent = 0;

  /** An empty table of objects, all named after the prefix. */
  public Trees table(String prefix) {
    return within(gateway, prefix);
  }

  public Trees within(py4j.Gateway gateway, String prefix) {
    Trees made = new Trees();
    made.gateway = gateway;
    made.prefix = prefix;
    return made;
  }

  /** [the value of the root, [what is new since the last call, object by object]]. */
  public String read(Object root) throws Exception {
    out = new StringBuilder(1 << 16);
    out.append('[');
    value(root);
    out.append(",[");
    boolean first = true;
    while (sent < objects.size()) {
      if (!first) out.append(",\n");
      first = false;
      send(objects.get(sent++));
    }
    out.append("]]");
    String said = out.toString();
    out = null;
    return said;
  }

  /** Nobody speaks of these objects any more. */
  public void release() {
    for (int i = 0; i < objects.size(); i++) gateway.deleteObject(prefix + i);
    objects.clear();
    numbers.clear();
    spoken.clear();
  }

  /** A sequence of objects by their names, separated by spaces. */
  public scala.collection.immutable.Seq sequence(String names) {
    ArrayList found = new ArrayList();
    if (!names.isEmpty()) {
      String[] parts = names.split(" ");
      for (int i = 0; i < parts.length; i++) found.add(gateway.getObject(parts[i]));
    }
    return seq(found);
  }

  private static scala.collection.immutable.Seq seq(List values) {
    return (scala.collection.immutable.Seq) scala.jdk.javaapi.CollectionConverters.asScala(values).toSeq();
  }

  /** Reads new columns for expressions, of which the names are separated by lines. */
  public String aliases(String expressions, String names) throws Exception {
    return read(seq(named(expressions, names)));
  }

  /** A projection to new columns for expressions, and to some that are passed on; nothing of it is read. */
  public LogicalPlan feed(String expressions, String names, String passed, LogicalPlan plan) {
    ArrayList columns = named(expressions, names);
    scala.collection.Iterator each = sequence(passed).iterator();
    while (each.hasNext()) columns.add(each.next());
    return new Project(seq(columns), plan);
  }

  /** A projection to the columns of a plan, each in the place of an attribute: whatever is bound to that one stays bound. */
  public LogicalPlan inPlace(LogicalPlan plan, String attributes) {
    scala.collection.immutable.Seq empty = seq(new ArrayList()), others = sequence(attributes);
    if (plan.output().size() != others.size()) throw new IllegalArgumentException(plan.output() + " in the place of " + others);
    scala.collection.Iterator columns = plan.output().iterator(), each = others.iterator();
    ArrayList made = new ArrayList();
    while (columns.hasNext()) {
      Attribute other = (Attribute) each.next();
      made.add(new Alias((Expression) columns.next(), other.name(), other.exprId(), other.qualifier(), scala.Option.apply(null), empty));
    }
    return new Project(seq(made), plan);
  }

  private ArrayList named(String expressions, String names) {
    scala.collection.immutable.Seq empty = seq(new ArrayList());
    scala.collection.Iterator each = sequence(expressions).iterator();
    String[] said = names.split("\n", -1);
    ArrayList made = new ArrayList();
    for (int i = 0; each.hasNext(); i++) {
      made.add(new Alias((Expression) each.next(), said[i], org.apache.spark.sql.catalyst.expressions.NamedExpression$.MODULE$.newExprId(), empty, scala.Option.apply(null), empty));
    }
    return made;
  }

  /** Reads a new column without an expression. */
  public String attribute(String name, DataType type, boolean nullable) throws Exception {
    scala.collection.immutable.Seq empty = seq(new ArrayList());
    return read(new AttributeReference(name, type, nullable, Metadata.empty(), org.apache.spark.sql.catalyst.expressions.NamedExpression$.MODULE$.newExprId(), empty));
  }

  /** Reads a projection. */
  public String project(String columns, LogicalPlan plan) throws Exception {
    return read(new Project(sequence(columns), plan));
  }

  /** The plan with some of its expressions in the place of others. */
  public Object replaced(LogicalPlan plan, String before, String after) {
    final IdentityHashMap changes = new IdentityHashMap();
    scala.collection.Iterator old = sequence(before).iterator();
    scala.collection.Iterator fresh = sequence(after).iterator();
    while (old.hasNext()) changes.put(old.next(), fresh.next());
    return plan.mapExpressions(new scala.runtime.AbstractFunction1() {
      public Object apply(Object expression) {
        Object change = changes.get(expression);
        return change == null ? expression : change;
      }
    });
  }

  private int number(Object object) {
    Integer known = (Integer) numbers.get(object);
    if (known != null) return known.intValue();
    int next = objects.size();
    numbers.put(object, Integer.valueOf(next));
    objects.add(object);
    gateway.putObject(prefix + next, object);
    return next;
  }

  private void send(Object object) throws Exception {
    out.append("{\"\":");
    text(object.getClass().getSimpleName());
    if (object instanceof TreeNode) parts((scala.Product) object);
    if (object instanceof LogicalPlan) plan((LogicalPlan) object);
    if (object instanceof Expression) expression((Expression) object);
    if (object instanceof DataType) {
      field("json", ((DataType) object).json());
      field("catalogString", ((DataType) object).catalogString());
    }
    if (object instanceof Metadata) field("json", ((Metadata) object).json());
    if (object instanceof org.apache.spark.sql.catalyst.expressions.ExprId) field("toString", object.toString());
    out.append('}');
  }

  private void parts(scala.Product product) throws Exception {
    for (int i = 0; i < product.productArity(); i++) {
      Object part = product.productElement(i);
      if (part instanceof Class || (part != null && part.getClass().isArray()) || part instanceof java.util.Collection || part instanceof Map) continue;
      out.append(',');
      text(product.productElementName(i));
      out.append(':');
      value(part);
    }
    out.append(",\"children\":");
    value(((TreeNode) product).children());
  }

  private void plan(LogicalPlan plan) throws Exception {
    scala.collection.immutable.Seq output;
    try {
      output = plan.output();
    } catch (Throwable none) {  // of what is not resolved yet
      return;
    }
    out.append(",\"expressions\":");
    value(plan.expressions());
    out.append(",\"output\":");
    value(output);
    scala.collection.Iterator each = plan.expressions().iterator();
    while (each.hasNext()) spoken.put(each.next(), Boolean.TRUE);
  }

  private void expression(Expression expression) throws Exception {
    if (spoken.containsKey(expression) || expression.children().isEmpty()) sql(expression);
    if (spoken.containsKey(expression)) field("nameless", nameless(expression));
    boolean deterministic, nullable;
    DataType type;
    try {
      deterministic = expression.deterministic();
      nullable = expression.nullable();
      type = expression.dataType();
    } catch (Throwable none) {  // some say so with an assertion
      return;
    }
    out.append(",\"deterministic\":").append(deterministic).append(",\"nullable\":").append(nullable).append(",\"dataType\":");
    value(type);
    if (expression instanceof NamedExpression) {
      field("name", ((NamedExpression) expression).name());
      out.append(",\"exprId\":");
      value(((NamedExpression) expression).exprId());
      out.append(",\"qualifier\":{\"n\":").append(number(((NamedExpression) expression).qualifier())).append('}');
    }
  }

  /** The text of an expression without names: columns are said by their number, aliases not at all. Null where it has no text. */
  public String nameless(Expression expression) {
    try {
      return ((Expression) expression.transformUp(new scala.runtime.AbstractPartialFunction() {
        public boolean isDefinedAt(Object part) {
          return part instanceof AttributeReference || part instanceof Alias;
        }
        public Object applyOrElse(Object part, scala.Function1 otherwise) {
          if (part instanceof Alias) return ((Alias) part).child();
          if (!(part instanceof AttributeReference)) return otherwise.apply(part);
          AttributeReference column = (AttributeReference) part;
          return column.withName("nosync#" + column.exprId().id()).withQualifier(seq(new ArrayList()));
        }
      })).sql();
    } catch (Throwable none) {
      return null;
    }
  }

  private void sql(Expression expression) {
    String said;
    try {
      said = expression.sql();
    } catch (Throwable none) {
      return;
    }
    field("sql", said);
  }

  private void field(String name, String said) {
    out.append(',');
    text(name);
    out.append(':');
    text(said);
  }

  private void value(Object value) throws Exception {
    if (value == null) out.append("null");
    else if (value instanceof Boolean || value instanceof Integer || value instanceof Long) out.append(value.toString());
    else if (value instanceof String) text((String) value);
    else if (value instanceof scala.Option) option((scala.Option) value);
    else if (value.getClass().getName().startsWith("scala.Tuple")) tuple((scala.Product) value);
    else if (value instanceof scala.collection.immutable.Seq && structural((scala.collection.immutable.Seq) value)) sequence((scala.collection.immutable.Seq) value);
    else out.append("{\"n\":").append(number(value)).append('}');
  }

  private void tuple(scala.Product tuple) throws Exception {
    out.append("{\"t\":[");
    for (int i = 0; i < tuple.productArity(); i++) {
      if (i > 0) out.append(',');
      value(tuple.productElement(i));
    }
    out.append("]}");
  }

  private void option(scala.Option option) throws Exception {
    out.append("{\"o\":[");
    if (option.isDefined()) value(option.get());
    out.append("]}");
  }

  private void sequence(scala.collection.immutable.Seq values) throws Exception {
    out.append('[');
    scala.collection.Iterator each = values.iterator();
    boolean first = true;
    while (each.hasNext()) {
      if (!first) out.append(',');
      first = false;
      value(each.next());
    }
    out.append(']');
  }

  /** Whether a sequence holds nothing but trees, or such sequences. */
  private boolean structural(scala.collection.immutable.Seq values) {
    scala.collection.Iterator each = values.iterator();
    while (each.hasNext()) {
      Object one = each.next();
      if (one instanceof TreeNode) continue;
      if (one instanceof scala.collection.immutable.Seq && structural((scala.collection.immutable.Seq) one)) continue;
      return false;
    }
    return true;
  }

  private void text(String said) {
    if (said == null) {
      out.append("null");
      return;
    }
    out.append('"');
    for (int i = 0; i < said.length(); i++) {
      char c = said.charAt(i);
      if (c == '"' || c == '\\') out.append('\\').append(c);
      else if (c < 32) out.append(String.format("\\u%04x", new Object[] {Integer.valueOf(c)}));
      else out.append(c);
    }
    out.append('"');
  }
}
