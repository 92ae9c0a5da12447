/**
 * An OpenFeature provider: a flag is an experiment, its variants are the actions, and `track` reports outcomes.
 *
 * @module
 */
import {
  ErrorCode,
  OpenFeatureEventEmitter,
  ProviderEvents,
  ProviderFatalError,
  StandardResolutionReasons,
  type EvaluationContext,
  type JsonValue,
  type Logger,
  type Provider,
  type ResolutionDetails,
  type TrackingEventDetails,
} from "@openfeature/server-sdk";
import {
  Client,
  RequestRejected,
  ServerUnavailable,
  isError,
  type Context,
  type Decision,
  type Outcome,
  type Signals,
} from "./client.js";

/** Address, key and the values of flags that are not text. */
export interface ProviderOptions {
  /** The server's address. */
  url: string;
  /** A key with the role writer. */
  key: string;
  /** By flag, the safe action, for when no server answers. */
  safe: Record<string, string>;
  /** For flags that are not text: by flag and by action, the value. */
  values?: Record<string, Record<string, JsonValue>>;
  /** The deadline of one evaluation in milliseconds. */
  timeoutMs?: number;
}

interface Flag {
  client: Client;
  /** Columns and actions, once the server has told them. */
  columns?: Set<string>;
  actions?: string[];
}

const MAX_REMEMBERED = 100_000;
const DELIVERY_DELAYS_MS = [100, 300, 1000, 3000, 10_000];
const BATCH_SIZE = 200;
const CLOSING_MS = 5000;
const IDS = new Set(["decision_id", "outcome_id", "targetingKey", "value"]);
const FLAG_ERRORS: Record<string, ErrorCode> = {
  unknown_experiment: ErrorCode.FLAG_NOT_FOUND,
  unauthorized: ErrorCode.PROVIDER_NOT_READY,
  forbidden: ErrorCode.PROVIDER_NOT_READY,
};

/**
 * Evaluates flags by decisions of a stagewise server.
 *
 * The flag's key is the name of an experiment; of the evaluation context, the columns that the experiment declares are
 * sent. The value is the name of the action, or what `values` says for it; the reason is the decision's reason code, or
 * `SPLIT`. If the server does not answer or rejects the request, the value is that of the safe action.
 *
 * `track("EXPERIMENT.SIGNAL", context, {value})` reports one signal, 1 if there is no value;
 * `track("EXPERIMENT", context, {click: 1, opt_out: 0})` reports several. The outcome belongs to `decision_id` of the
 * details or of the context, else to the last decision of the same targeting key in this process.
 */
export class StagewiseProvider implements Provider {
  readonly metadata = { name: "stagewise" };
  readonly runsOn = "server" as const;
  readonly events = new OpenFeatureEventEmitter();
  private readonly flags = new Map<string, Flag>();
  private readonly last = new Map<string, string>();
  private readonly pending: { client: Client; outcome: Outcome }[] = [];
  private delivering: Promise<void> | undefined;
  private isAway = false;
  private isClosing = false;

  constructor(private readonly options: ProviderOptions) {
    for (const [experiment, safe] of Object.entries(options.safe)) {
      const { url, key, timeoutMs } = options;
      const settings = { url, key, experiment, safe, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
      this.flags.set(experiment, { client: new Client(settings) });
    }
  }

  /** Read the experiments; a server that does not answer yet is no error, since every flag has a safe action. */
  async initialize(): Promise<void> {
    for (const [key, flag] of this.flags) {
      try {
        await this.describe(key, flag);
      } catch (error) {
        throw new ProviderFatalError(`${key}: ${(error as Error).message}`);
      }
    }
  }

  /** Deliver what is pending, for at most five seconds. */
  async onClose(): Promise<void> {
    this.isClosing = true;
    const late = new Promise<void>((resolve) => setTimeout(resolve, CLOSING_MS).unref());
    await Promise.race([this.delivering ?? Promise.resolve(), late]);
    if (this.pending.length) console.error(`stagewise: ${this.pending.length} outcomes are not delivered`);
    for (const { client } of this.flags.values()) await client.close();
  }

  resolveBooleanEvaluation(key: string, value: boolean, context: EvaluationContext, logger: Logger) {
    return this.resolve(key, value, context, logger, (one): one is boolean => typeof one === "boolean");
  }

  resolveStringEvaluation(key: string, value: string, context: EvaluationContext, logger: Logger) {
    return this.resolve(key, value, context, logger, (one): one is string => typeof one === "string");
  }

  resolveNumberEvaluation(key: string, value: number, context: EvaluationContext, logger: Logger) {
    return this.resolve(key, value, context, logger, (one): one is number => typeof one === "number");
  }

  resolveObjectEvaluation<T extends JsonValue>(key: string, value: T, context: EvaluationContext, logger: Logger) {
    return this.resolve(key, value, context, logger, (one): one is T => typeof one === "object" && one !== null);
  }

  /** Report an outcome; it is sent in the background, and again while the server is unavailable. */
  track(name: string, context: EvaluationContext = {}, details: TrackingEventDetails = {}): void {
    const dot = name.lastIndexOf(".");
    const isWhole = this.flags.has(name) || dot < 0;
    const key = isWhole ? name : name.slice(0, dot);
    const flag = this.flags.get(key);
    const entries = Object.entries(details).filter(([signal]) => !IDS.has(signal)) as [string, number | boolean][];
    const signals: Signals = isWhole ? Object.fromEntries(entries) : { [name.slice(dot + 1)]: details.value ?? 1 };
    const named = details["decision_id"] ?? context["decision_id"] ?? this.last.get(`${key} ${context.targetingKey}`);
    if (flag === undefined || typeof named !== "string" || Object.keys(signals).length === 0) {
      console.warn(`stagewise: event ${name} of user ${context.targetingKey} has no experiment, decision or signal`);
      return;
    }
    const outcomeId = details["outcome_id"];
    const ids = typeof outcomeId === "string" ? { outcomeId } : {};
    try {
      JSON.stringify(signals); // else every outcome of its batch would be lost with it
    } catch (error) {
      console.warn(`stagewise: event ${name} of user ${context.targetingKey} is dropped: ${(error as Error).message}`);
      return;
    }
    this.pending.push({ client: flag.client, outcome: { decision: named, signals, ...ids } });
    this.delivering ??= this.deliver().finally(() => (this.delivering = undefined));
  }

  private async deliver(): Promise<void> {
    for (let turn = 0; this.pending.length; ) {
      const client = this.pending[0]!.client;
      const other = this.pending.findIndex((one) => one.client !== client);
      const batch = this.pending.slice(0, Math.min(BATCH_SIZE, other < 0 ? BATCH_SIZE : other));
      try {
        const answers = await client.learnMany(batch.map((one) => one.outcome));
        answers.forEach((one, i) => {
          if (isError(one)) console.warn(`stagewise: ${JSON.stringify(batch[i]!.outcome)} is rejected: ${one.message}`);
        });
      } catch (error) {
        const isRefused = error instanceof RequestRejected && (error.status === 401 || error.status === 403);
        if (isRefused && this.isClosing) return;
        if (isRefused && turn === 0) {
          console.error(`stagewise: ${this.pending.length} outcomes wait, and are sent again: ${error.message}`);
        }
        if (isRefused || error instanceof ServerUnavailable) {
          const delay = DELIVERY_DELAYS_MS[Math.min(turn++, DELIVERY_DELAYS_MS.length - 1)]!;
          await new Promise((resolve) => setTimeout(resolve, delay));
          continue;
        }
        console.warn(`stagewise: ${batch.length} outcomes are rejected: ${(error as Error).message}`);
      }
      turn = 0;
      this.pending.splice(0, batch.length);
    }
  }

  private async resolve<T extends JsonValue>(
    key: string,
    fallback: T,
    context: EvaluationContext,
    logger: Logger,
    isValue: (value: unknown) => value is T,
  ): Promise<ResolutionDetails<T>> {
    const flag = this.flags.get(key);
    if (flag === undefined) {
      const errorMessage = `${key} has no safe action; name it in \`safe\` of the provider`;
      return { value: fallback, reason: StandardResolutionReasons.ERROR, errorCode: ErrorCode.FLAG_NOT_FOUND, errorMessage };
    }
    const values = this.options.values?.[key] ?? {};
    const safe: unknown = values[flag.client.safe] ?? flag.client.safe;
    let decision: Decision | undefined;
    try {
      if (flag.columns === undefined) await this.describe(key, flag);
      const actions = [flag.client.safe, ...(flag.actions ?? [])];
      const wrong = actions.find((action) => !isValue(values[action] ?? action)); // before a decision is logged
      if (wrong !== undefined) {
        const errorMessage = `action ${wrong} of ${key} has no value of the flag's type; give it in \`values\``;
        return { value: fallback, reason: StandardResolutionReasons.ERROR, errorCode: ErrorCode.TYPE_MISMATCH, errorMessage };
      }
      decision = flag.columns === undefined ? undefined : await this.decide(key, flag, context);
    } catch (error) {
      if (!(error instanceof RequestRejected)) throw error;
      return this.fail(key, error, fallback, isValue(safe) ? safe : fallback, flag.client.safe, logger);
    }
    this.setAway(!decision?.logged);
    if (decision === undefined) {
      const flagMetadata = { logged: false };
      return { value: isValue(safe) ? safe : fallback, variant: flag.client.safe, reason: "server_unavailable", flagMetadata };
    }
    return {
      value: (values[decision.action] ?? decision.action) as T,
      variant: decision.action,
      reason: decision.reason ?? StandardResolutionReasons.SPLIT,
      flagMetadata: buildMetadata(decision),
    };
  }

  /** Decide by the columns that the experiment declares; read them again if the problem has changed. */
  private async decide(key: string, flag: Flag, context: EvaluationContext): Promise<Decision> {
    const named = context["decision_id"];
    const options = typeof named === "string" ? { decisionId: named } : {};
    let decision: Decision;
    try {
      decision = await flag.client.decide(selectColumns(flag, context), options);
    } catch (error) {
      const codes = ["unknown_context_field", "missing_context_field"];
      if (!(error instanceof RequestRejected && codes.includes(error.code))) throw error;
      await this.describe(key, flag);
      decision = await flag.client.decide(selectColumns(flag, context), options);
    }
    if (context.targetingKey) {
      const user = `${key} ${context.targetingKey}`;
      this.last.delete(user);
      this.last.set(user, decision.decision_id);
      if (this.last.size > MAX_REMEMBERED) this.last.delete(this.last.keys().next().value!);
    }
    return decision;
  }

  /** The value of the safe action with the error. OpenFeature serves the caller's default where there is an error code. */
  private fail<T extends JsonValue>(
    key: string,
    error: RequestRejected,
    fallback: T,
    safe: T,
    variant: string,
    logger: Logger,
  ): ResolutionDetails<T> {
    const errorCode = FLAG_ERRORS[error.code] ?? (error.status === 422 ? ErrorCode.INVALID_CONTEXT : ErrorCode.GENERAL);
    const flagMetadata = { logged: false, error_code: error.code, message: error.message };
    const details = { value: safe, variant, reason: StandardResolutionReasons.ERROR, flagMetadata };
    if (JSON.stringify(safe) === JSON.stringify(fallback)) return { ...details, errorCode, errorMessage: error.message };
    logger.warn(`the default of ${key} is not the value of its safe action ${variant}, which is served: ${error.message}`);
    return details;
  }

  /** Read columns and actions. The safe action that was given must be the problem's. */
  private async describe(key: string, flag: Flag): Promise<void> {
    const detail = await flag.client.describe();
    if (detail === undefined) return;
    const problem = detail.problem as unknown as { safe_name: string; action_names: string[] };
    if (problem.safe_name !== flag.client.safe) {
      const message = `the safe action of ${key} is given as ${flag.client.safe}; the server's is ${problem.safe_name}`;
      throw new RequestRejected("unknown_action", message, 422);
    }
    flag.columns = new Set(detail.context_names);
    flag.actions = problem.action_names;
  }

  private setAway(isAway: boolean): void {
    if (this.isAway === isAway) return;
    this.isAway = isAway;
    this.events.emit(isAway ? ProviderEvents.Stale : ProviderEvents.Ready);
  }
}

function selectColumns(flag: Flag, context: EvaluationContext): Context {
  const entries = Object.entries(context).filter(([name]) => flag.columns?.has(name));
  return Object.fromEntries(
    entries.map(([name, value]) => [name, value instanceof Date ? value.toISOString() : value]),
  ) as Context;
}

/** Return what a decision says, flat: OpenFeature's metadata hold no objects. */
function buildMetadata(decision: Decision): Record<string, string | number | boolean> {
  const flat: [string, unknown][] = [
    ...(["decision_id", "logged", "mode", "version", "snapshot", "message", "estimated_reward"] as const).map(
      (name): [string, unknown] => [name, decision[name]],
    ),
    ["probability", decision.probabilities[decision.action]],
    ...Object.entries(decision.limits ?? {}).flatMap(([name, limit]) =>
      Object.entries(limit).map(([part, value]): [string, unknown] => [`limits.${name}.${part}`, value]),
    ),
  ];
  return Object.fromEntries(flat.filter(([, value]) => ["string", "number", "boolean"].includes(typeof value))) as Record<
    string,
    string | number | boolean
  >;
}
